/* A host or target, as the proxy gets them from inside: whatever is accepted is canonical, clean and parses to
 * itself. */
#include "fuzz/fuzz.h"

#include "policy/host.h"

#include <string.h>

static void check_host(const struct host *host)
{
  struct host again;

  FUZZ_ASSERT(host_parse(span_of(host->name), NULL, &again) == 0);
  FUZZ_ASSERT(again.kind == host->kind && strcmp(again.name, host->name) == 0);
  for (const char *at = host->name; *at; at++)
    FUZZ_ASSERT((*at >= 'a' && *at <= 'z') || (*at >= '0' && *at <= '9') || strchr("-_.:", *at));
  if (host->kind == HOST_ADDR)
    FUZZ_ASSERT(addr_equal(&host->addr, &again.addr) && addr_classify(&host->addr) == addr_classify(&again.addr));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct span text = { (const char *)data, size };
  struct addr_prefix prefix;
  struct host host;
  struct host again;
  uint16_t port;

  if (host_parse(text, NULL, &host) == 0)
    check_host(&host);
  if (host_parse_target(text, 443, NULL, &host, &port) == 0) {
    buf_autofree struct buf out = BUF_INIT(512);
    uint16_t port_again;
    check_host(&host);
    FUZZ_ASSERT(port != 0);
    host_print_target(&host, port, &out);
    FUZZ_ASSERT(host_parse_target(buf_span(&out), 0, NULL, &again, &port_again) == 0);
    FUZZ_ASSERT(port == port_again && strcmp(host.name, again.name) == 0);
  }
  if (addr_prefix_parse(text, &prefix) == 0) {
    buf_autofree struct buf out = BUF_INIT(64);
    struct addr_prefix prefix_again;
    addr_prefix_print(&prefix, &out);
    FUZZ_ASSERT(addr_prefix_parse(buf_span(&out), &prefix_again) == 0);
    FUZZ_ASSERT(prefix.length == prefix_again.length && addr_equal(&prefix.addr, &prefix_again.addr));
  }
  return 0;
}
