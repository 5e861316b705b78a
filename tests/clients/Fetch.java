import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;

/** Prints the page of the URL given, by java.net.http. */
public class Fetch {
  public static void main(String[] args) throws Exception {
    var client = HttpClient.newHttpClient();
    var answer = client.send(HttpRequest.newBuilder(URI.create(args[0])).build(), BodyHandlers.ofString());
    System.out.print(answer.body());
    System.exit(answer.statusCode() == 200 ? 0 : 1);
  }
}
