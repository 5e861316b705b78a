// The server and the client of the measures of terminated TLS (terminated.py).
//
//	https serve CERTIFICATE PORT     an empty 200 for /, N MiB for /N; HTTP/1.1 and HTTP/2
//	https ask URL                    one round of a measure per line of standard input: "VIA MEASURE COUNT", where VIA is
//	                                 "direct" or the URL of a proxy, with "+h2" behind for HTTP/2
//
// A round's answer is one line, the seconds that it took.
package main

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

const parallel = 16

func serve(certificate, port string) {
	block := make([]byte, 1<<20)
	handler := func(answer http.ResponseWriter, request *http.Request) {
		blocks, _ := strconv.Atoi(request.URL.Path[1:])
		answer.Header().Set("Content-Length", strconv.Itoa(blocks<<20))
		for ; blocks > 0; blocks-- {
			answer.Write(block)
		}
	}
	server := &http.Server{Addr: ":" + port, Handler: http.HandlerFunc(handler), ErrorLog: log.New(io.Discard, "", 0)}
	log.Fatal(server.ListenAndServeTLS(certificate, certificate))
}

type way struct {
	via    string
	url    string
	http2  bool
	kept   *http.Client
	parked []net.Conn
}

func roots() *x509.CertPool {
	pool, err := x509.SystemCertPool()
	if err != nil {
		log.Fatal(err)
	}
	if more, err := os.ReadFile(os.Getenv("BENCH_ROOTS")); err == nil {
		pool.AppendCertsFromPEM(more)
	}
	return pool
}

var trusted = roots()

func (w *way) client() *http.Client {
	transport := &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: trusted},
		MaxIdleConnsPerHost: parallel,
		ForceAttemptHTTP2:   w.http2,
		WriteBufferSize:     65536,
		ReadBufferSize:      65536,
	}
	if !w.http2 {
		transport.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	if w.via != "direct" {
		proxy, err := url.Parse(w.via)
		if err != nil {
			log.Fatal(err)
		}
		transport.Proxy = http.ProxyURL(proxy)
	}
	return &http.Client{Transport: transport}
}

func (w *way) get(client *http.Client, path string) {
	answer, err := client.Get(w.url + path)
	if err != nil {
		log.Fatal(err)
	}
	_, err = io.Copy(io.Discard, answer.Body)
	answer.Body.Close()
	if err != nil || answer.StatusCode != 200 || (answer.ProtoMajor == 2) != w.http2 {
		log.Fatal(answer.Status, " ", answer.Proto, " ", err)
	}
}

// One after the other, on one connection that stays.
func (w *way) request(count int) {
	for ; count > 0; count-- {
		w.get(w.kept, "/")
	}
}

// Several at a time.
func (w *way) load(count int) {
	var group sync.WaitGroup
	for i := 0; i < parallel; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			w.request(count / parallel)
		}()
	}
	group.Wait()
}

// Each on a connection of its own.
func (w *way) connect(count int) {
	for ; count > 0; count-- {
		client := w.client()
		w.get(client, "/")
		client.CloseIdleConnections()
	}
}

func (w *way) stream(mebibytes int) {
	w.get(w.kept, "/"+strconv.Itoa(mebibytes))
}

// Opens a connection that has carried one request and stays idle.
func (w *way) park() net.Conn {
	origin, _ := url.Parse(w.url)
	address := origin.Host
	if w.via != "direct" {
		proxy, _ := url.Parse(w.via)
		address = proxy.Host
	}
	conn, err := net.Dial("tcp", address)
	if err != nil {
		log.Fatal(err)
	}
	if w.via != "direct" {
		fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", origin.Host, origin.Host)
		answer, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: "CONNECT"})
		if err != nil || answer.StatusCode != 200 {
			log.Fatal(answer, err)
		}
	}
	config := &tls.Config{RootCAs: trusted, ServerName: origin.Hostname(), NextProtos: []string{"http/1.1"}}
	secure := tls.Client(conn, config)
	fmt.Fprintf(secure, "GET / HTTP/1.1\r\nHost: %s\r\n\r\n", origin.Host)
	answer, err := http.ReadResponse(bufio.NewReader(secure), nil)
	if err != nil || answer.StatusCode != 200 {
		log.Fatal(answer, err)
	}
	return secure
}

func (w *way) hold(count int) {
	for len(w.parked) > count {
		w.parked[len(w.parked)-1].Close()
		w.parked = w.parked[:len(w.parked)-1]
	}
	for len(w.parked) < count {
		w.parked = append(w.parked, w.park())
	}
}

func ask(target string) {
	ways := map[string]*way{}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var via, measure string
		var count int
		fmt.Sscan(lines.Text(), &via, &measure, &count)
		w := ways[via]
		if w == nil {
			w = &way{url: target, http2: strings.HasSuffix(via, "+h2"), via: strings.TrimSuffix(via, "+h2")}
			w.kept = w.client()
			ways[via] = w
		}
		begun := time.Now()
		switch measure {
		case "request":
			w.request(count)
		case "load":
			w.load(count)
		case "connect":
			w.connect(count)
		case "stream":
			w.stream(count)
		case "hold":
			w.hold(count)
		}
		fmt.Println(time.Since(begun).Seconds())
	}
}

func main() {
	if os.Args[1] == "serve" {
		serve(os.Args[2], os.Args[3])
	}
	ask(os.Args[2])
}
