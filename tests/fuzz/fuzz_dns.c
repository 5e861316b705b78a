/* A datagram, as the stub gets it from inside: what is answered is answered with the same id and question, within the
 * room there is, and as no query that the stub itself would answer. */
#include "fuzz/fuzz.h"

#include "proxy/dns.h"

#include <errno.h>
#include <string.h>

static unsigned number_at(const char *out, size_t at)
{
  return (unsigned)(unsigned char)out[at] << 8 | (unsigned char)out[at + 1];
}

static void check_answer(const struct dns_query *query, const struct dns_answer *answer, size_t size)
{
  char *out = malloc(size ? size : 1);
  struct dns_query again;
  int len;

  FUZZ_ASSERT(out);
  len = dns_build_answer(query, answer, out, size);
  if (len < 0) {
    FUZZ_ASSERT(size < DNS_ANSWER_MIN_BYTES && len == -ENOSPC);
  } else {
    size_t question = query->question.len;

    FUZZ_ASSERT((size_t)len <= size && (size_t)len >= 12 + question);
    FUZZ_ASSERT(number_at(out, 0) == query->id && (number_at(out, 2) & 0x8000));
    FUZZ_ASSERT((number_at(out, 2) & 0xf) == ((unsigned)answer->rcode & 0xf));
    FUZZ_ASSERT(number_at(out, 4) == (question > 0));
    FUZZ_ASSERT(question == 0 || memcmp(out + 12, query->question.ptr, question) == 0);
    FUZZ_ASSERT(number_at(out, 6) == 0 || number_at(out, 6) == answer->count);
    FUZZ_ASSERT(dns_parse_query((struct span){ out, (size_t)len }, NULL, &again) < 0);
  }
  free(out);
}

static void check_query(struct span message)
{
  static const struct addr addrs[4];
  static const struct addr addrs6[4] = {
    { .family = ADDR_V6 }, { .family = ADDR_V6 }, { .family = ADDR_V6 }, { .family = ADDR_V6 }
  };
  struct dns_answer answer = { .ttl = 60 };
  struct dns_query query;
  struct host again;

  if (dns_parse_query(message, NULL, &query) < 0)
    return;
  FUZZ_ASSERT(query.udp_size >= 512 && query.udp_size <= LIMITS_DNS_UDP_BYTES);
  if (query.has_host) {
    FUZZ_ASSERT(query.host.kind == HOST_NAME && host_parse(span_of(query.host.name), NULL, &again) == 0);
    FUZZ_ASSERT(again.kind == HOST_NAME && strcmp(again.name, query.host.name) == 0);
    /* The canonical name is the question's: a length byte for each dot, one in front and the root's behind. */
    FUZZ_ASSERT(strlen(query.host.name) + 2 + 4 == query.question.len);
  }
  answer.rcode = query.rcode;
  if (query.rcode == DNS_NOERROR && (query.type == DNS_TYPE_A || query.type == DNS_TYPE_AAAA)) {
    answer.addrs = query.type == DNS_TYPE_A ? addrs : addrs6;
    answer.count = 1 + message.len % 4;
  }
  check_answer(&query, &answer, query.udp_size);
  check_answer(&query, &answer, message.len);
  check_answer(&query, &answer, message.len % 40);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct span bytes = { (const char *)data, size };
  struct span message;
  size_t len;

  check_query(bytes);
  while (dns_frame_scan(bytes, NULL, &message, &len) == 1) {
    FUZZ_ASSERT(len == message.len + 2 && len <= bytes.len);
    check_query(message);
    bytes = span_sub(bytes, len, bytes.len);
  }
  return 0;
}
