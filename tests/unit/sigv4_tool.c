/* What sigv4_botocore.py needs from the program: signatures of requests.
 *   sigv4_tool < FILE    FILE has requests, each as a line "SECRET BODY-HASH LENGTH" and LENGTH bytes of a head;
 *                        prints a line for each: the signature, or why there is none */
#include "base/num.h"
#include "policy/limits.h"
#include "proxy/digest.h"

#include <stdio.h>
#include <stdlib.h>

static const char *sign(struct span text, struct span body, struct span secret, char signature[SIGV4_HEX_BYTES + 1])
{
  struct err err = ERR_INIT;
  struct http_head head;
  struct sigv4_auth auth;
  const struct http_field *field;

  if (http_head_parse_request(text, &err, &head) < 0)
    return "no head";
  field = http_head_find(&head, "authorization", NULL);
  if (!field || !sigv4_read(field->value, &auth))
    return "no signature";
  if (!sigv4_is_whole(&auth, &head))
    return "not whole";
  return sigv4_sign(digest_crypto(), &head, &auth, body, secret, signature) == 0 ? signature : "failed";
}

int main(void)
{
  static char line[1024];
  static char head[LIMITS_HTTP_HEAD_BYTES];

  while (fgets(line, sizeof line, stdin)) {
    struct span rest = span_sub(span_of(line), 0, strcspn(line, "\n"));
    char signature[SIGV4_HEX_BYTES + 1] = "";
    struct span secret;
    struct span body;
    uint64_t len;

    if (!span_split(&rest, ' ', &secret) || !span_split(&rest, ' ', &body) ||
        num_parse_u64(rest, 0, sizeof head, &len) < 0 || fread(head, 1, len, stdin) != len)
      return EXIT_FAILURE;
    puts(sign((struct span){ head, len }, body, secret, signature));
  }
  return EXIT_SUCCESS;
}
