/* Theory of operation
 *
 * The stub never asks anybody. A name that some rule allows gets addresses of its own (names.h), any other NXDOMAIN; so
 * a lookup carries nothing out, however it is spelled. Only when a connection to such an address comes does the proxy
 * resolve the name for real.
 *
 *   query                                   answer
 *   A, AAAA of an allowed name              its synthetic address; AAAA is empty where the sandbox has no IPv6 route
 *   HTTPS, SVCB of an allowed name          empty: what they hold would lead past the synthetic address
 *   another type of an allowed name         REFUSED
 *   localhost and below                     the loopback (RFC 6761, 6.3)
 *   a name that is not allowed,             NXDOMAIN, told to the audit, and to the summary where the type is one of
 *   or that no host can have                the four above
 *   the same, and the user can be asked     as of an allowed name: the question comes with the connection, which can
 *                                           wait for a person's answer as long as that takes, and a resolver cannot
 *
 * A rule may name ports from 1024 on. Their listeners stand on the name's own address alone, so that programs inside
 * can use the port themselves; they are made at the first lookup, which waits for them.
 */
#include "proxy/stub.h"

#include "base/fd.h"
#include "policy/rule.h"
#include "proxy/ask.h"
#include "proxy/listener.h"
#include "proxy/notify.h"

#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define TTL_SECONDS 60 /* the pair holds for the run; short, so that a cache that outlives it does no harm */
#define QUERIES_PER_TURN 64
#define LIKELY_PORT 443 /* of a lookup, as decide_lookup() has it */
#define LOOKUPS_MAX 16 /* denied lookups whose other half may follow */

struct stub_question {
  struct stub *stub;
  const struct dns_query *query;
  void (*done)(void *data, const struct dns_query *query, const struct dns_answer *answer);
  void *data;
  struct names_pair pair;
  unsigned waiting; /* listeners that are not there yet */
};

struct udp {
  struct udp *next;
  struct stub *stub;
  int fd;
  struct loop_io *io;
};

/* A client asks for A and AAAA of a name, and maybe HTTPS, and means one lookup. */
struct lookup {
  char name[HOST_NAME_MAX_BYTES];
  size_t name_len;
  unsigned asked; /* a bit per type that it has asked for */
};

struct stub {
  struct proxy *proxy;
  struct names *names;
  struct lookup lookups[LOOKUPS_MAX]; /* the last ones that were denied */
  size_t next_lookup;
  bool has_v6;
  unsigned generation;
  struct udp *sockets;
  size_t pending;
};

struct stub *stub_new(struct proxy *proxy, bool has_v6, unsigned generation)
{
  struct stub *stub = mem_calloc(1, sizeof *stub);

  if (!stub)
    return NULL;
  stub->proxy = proxy;
  stub->has_v6 = has_v6;
  stub->generation = generation;
  stub->names = names_new(generation);
  if (stub->names)
    return stub;
  free(stub);
  return NULL;
}

void stub_free(struct stub *stub)
{
  while (stub && stub->sockets) {
    struct udp *udp = stub->sockets;

    stub->sockets = udp->next;
    loop_io_free(&udp->io);
    fd_close(&udp->fd);
    free(udp);
  }
  if (stub)
    names_free(stub->names);
  free(stub);
}

struct proxy *stub_proxy(const struct stub *stub)
{
  return stub->proxy;
}

void stub_restore_name(const struct stub *stub, struct host *host)
{
  const char *name = host->kind == HOST_ADDR ? names_find(stub->names, &host->addr) : NULL;

  if (name)
    (void)host_parse(span_of(name), NULL, host); /* canonical already */
}

struct verdict stub_judge_target(const struct stub *stub, const struct host *host, uint16_t port)
{
  struct verdict verdict = decide_target(stub->proxy->policy, host, port);

  if (verdict.allow || !stub->generation || host->kind != HOST_ADDR || !names_is_synthetic(&host->addr))
    return verdict;
  return (struct verdict){ .reason = REASON_RESOLVE_FAILED, .detail = "the address stands for no name (any more)" };
}

/* The judgement. */

static bool leads_to_address(const struct dns_query *query)
{
  return query->type == DNS_TYPE_A || query->type == DNS_TYPE_AAAA || query->type == DNS_TYPE_HTTPS ||
         query->type == DNS_TYPE_SVCB;
}

/* Canonical where it can be. */
static struct span name_of(const struct dns_query *query)
{
  return query->has_host ? span_of(query->host.name) : (struct span){ .ptr = query->name, .len = query->name_len };
}

/* The summary proposes a rule, and a rule gives a name addresses and nothing else: a question for another record, as
 * apt(8) asks for SRV before anything, is told to the audit alone. */
static void tell_denied(struct stub *stub, const struct dns_query *query, const struct verdict *verdict)
{
  struct denial denial = { .verdict = *verdict, .host = query->has_host ? &query->host : NULL };

  denial.host_text = name_of(query);

  if (leads_to_address(query))
    notify_denied(stub->proxy->notify, &denial);
  audit_write(stub->proxy->audit, &(struct audit_record){ .event = "lookup",
                                                          .via = "dns",
                                                          .verdict = AUDIT_DENY,
                                                          .reason = verdict->reason,
                                                          .host = name_of(query),
                                                          .rule = verdict->rule });
}

void stub_tell_limit(struct stub *stub, enum reason reason)
{
  struct verdict verdict = { .reason = reason };

  notify_denied(stub->proxy->notify, &(struct denial){ .verdict = verdict });
  audit_write(stub->proxy->audit,
              &(struct audit_record){ .event = "lookup", .via = "dns", .verdict = AUDIT_DENY, .reason = reason });
}

/* Whether a denied query belongs to a lookup that has been told already: a type that this lookup has not asked for yet.
 * The same type once more is a lookup of its own. */
static bool is_same_lookup(struct stub *stub, const struct dns_query *query)
{
  unsigned type = query->type == DNS_TYPE_A ? 1 : query->type == DNS_TYPE_AAAA ? 2 : 4;
  struct span name = name_of(query);
  struct lookup *lookup;
  bool same;

  for (size_t i = 0; i < LOOKUPS_MAX; i++) {
    lookup = &stub->lookups[i];
    if (!span_equal((struct span){ .ptr = lookup->name, .len = lookup->name_len }, name))
      continue;
    same = !(lookup->asked & type);
    lookup->asked = same ? lookup->asked | type : type;
    return same;
  }
  lookup = &stub->lookups[stub->next_lookup];
  stub->next_lookup = (stub->next_lookup + 1) % LOOKUPS_MAX;
  memcpy(lookup->name, name.ptr, name.len);
  lookup->name_len = name.len;
  lookup->asked = type;
  return false;
}

static bool is_loopback_name(const struct host *host)
{
  return strcmp(host->name, "localhost") == 0 || host_is_subdomain(span_of(host->name), SPAN("localhost"));
}

static void answer(struct stub_question *question, enum dns_rcode rcode, const struct addr *addr)
{
  struct dns_answer made = { .rcode = rcode, .addrs = addr, .count = addr ? 1 : 0, .ttl = TTL_SECONDS };

  question->done(question->data, question->query, &made);
}

static void answer_pair(struct stub_question *question)
{
  switch ((enum dns_type)question->query->type) {
  case DNS_TYPE_A:
    answer(question, DNS_NOERROR, &question->pair.v4);
    return;
  case DNS_TYPE_AAAA:
    answer(question, DNS_NOERROR, question->stub->has_v6 ? &question->pair.v6 : NULL);
    return;
  case DNS_TYPE_HTTPS:
  case DNS_TYPE_SVCB:
    answer(question, DNS_NOERROR, NULL);
    return;
  default:
    answer(question, DNS_REFUSED, NULL);
  }
}

static void on_listener(void *data)
{
  struct stub_question *question = data;

  if (--question->waiting)
    return;
  answer_pair(question);
  free(question);
}

static void ask_for_ports(struct stub_question *question, const struct policy_rule *rule)
{
  const struct policy *policy = question->stub->proxy->policy;
  const struct host *host = &question->query->host;
  unsigned listed = 0;
  int r;

  for (size_t i = 0; i < rule->port_count; i++) {
    for (uint32_t port = rule->ports[i].first; port <= rule->ports[i].last && listed < LIMITS_RULE_PORTS; port++) {
      listed++;
      if (port < LIMITS_FREE_PORT || listener_takes_port(question->stub->proxy, (uint16_t)port) ||
          !decide_target(policy, host, (uint16_t)port).allow)
        continue;
      r = inside_listen(question->stub->proxy->inside, &question->pair, (uint16_t)port, on_listener, question);
      if (r == 0)
        question->waiting++;
      else
        stub_tell_limit(question->stub, r == -ENOBUFS ? REASON_LIMIT_PORTS : REASON_LIMIT);
    }
  }
}

/* Asks for the listeners of a name that is looked up for the first time. True when the answer has to wait. */
static bool await_listeners(struct stub_question *question)
{
  const struct policy *policy = question->stub->proxy->policy;

  for (size_t i = 0; i < policy->allow.count; i++) {
    if (rule_covers_host(&policy->allow.items[i], &question->query->host))
      ask_for_ports(question, &policy->allow.items[i]);
  }
  return question->waiting > 0;
}

static void deny(struct stub_question *question, const struct verdict *verdict)
{
  if (!leads_to_address(question->query) || !is_same_lookup(question->stub, question->query))
    tell_denied(question->stub, question->query, verdict);
  answer(question, DNS_NXDOMAIN, NULL);
}

/* True when the answer has to wait. */
static bool judge(struct stub_question *question)
{
  struct stub *stub = question->stub;
  const struct dns_query *query = question->query;
  struct verdict verdict;
  bool fresh;

  if (query->rcode != DNS_NOERROR || query->name_len == 0) {
    answer(question, query->rcode != DNS_NOERROR ? query->rcode : DNS_NXDOMAIN, NULL);
    return false;
  }
  if (!query->has_host) {
    deny(question, &(struct verdict){ .reason = REASON_BAD_TARGET });
    return false;
  }
  if (is_loopback_name(&query->host)) {
    question->pair = (struct names_pair){ .v4 = { .family = ADDR_V4, .bytes = { 127, 0, 0, 1 } },
                                          .v6 = { .family = ADDR_V6, .bytes = { [15] = 1 } } };
    answer_pair(question);
    return false;
  }
  verdict = decide_lookup(stub->proxy->policy, &query->host);
  if (!verdict.allow && !ask_would(stub->proxy->ask, &query->host, LIKELY_PORT, &verdict)) {
    deny(question, &verdict);
    return false;
  }
  if (names_get(stub->names, query->host.name, &fresh, &question->pair) < 0) {
    tell_denied(stub, query, &(struct verdict){ .reason = REASON_LIMIT_NAMES });
    answer(question, DNS_SERVFAIL, NULL);
    return false;
  }
  /* Another question may have asked for this name's listeners just now. */
  if (fresh ? await_listeners(question) : inside_wait(stub->proxy->inside, on_listener, question)) {
    question->waiting += !fresh;
    return true;
  }
  answer_pair(question);
  return false;
}

struct stub_question *stub_ask(struct stub *stub, const struct dns_query *query,
                               void (*done)(void *data, const struct dns_query *query, const struct dns_answer *answer),
                               void *data)
{
  struct stub_question *question = mem_calloc(1, sizeof *question);

  if (!question) {
    done(data, query, &(struct dns_answer){ .rcode = DNS_SERVFAIL });
    return NULL;
  }
  *question = (struct stub_question){ .stub = stub, .query = query, .done = done, .data = data };
  if (judge(question))
    return question;
  free(question);
  return NULL;
}

void stub_forget(struct stub_question *question)
{
  if (!question)
    return;
  inside_forget(question->stub->proxy->inside, question);
  free(question);
}

/* UDP. */

/* A query with everything that the answer needs. */
struct datagram {
  struct stub *stub;
  int fd;
  struct sockaddr_storage peer;
  socklen_t peer_len;
  /* The address that was asked, to answer from. */
  _Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(struct in6_pktinfo))];
  size_t control_len;
  struct dns_query query;
  size_t len;
  char bytes[LIMITS_DNS_QUERY_BYTES]; /* the query itself: its question points into it */
};

static void reply(void *data, const struct dns_query *query, const struct dns_answer *made)
{
  struct datagram *datagram = data;
  char out[LIMITS_DNS_UDP_BYTES];
  int len = dns_build_answer(query, made, out, query->udp_size < sizeof out ? query->udp_size : sizeof out);
  struct iovec iov = { .iov_base = out, .iov_len = len > 0 ? (size_t)len : 0 };
  struct msghdr message = { .msg_name = &datagram->peer,
                            .msg_namelen = datagram->peer_len,
                            .msg_iov = &iov,
                            .msg_iovlen = 1,
                            .msg_control = datagram->control,
                            .msg_controllen = datagram->control_len };

  if (len > 0)
    (void)sendmsg(datagram->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void reply_later(void *data, const struct dns_query *query, const struct dns_answer *made)
{
  struct datagram *datagram = data;

  reply(data, query, made);
  datagram->stub->pending--;
  free(datagram);
}

/* What told us the address becomes what sets it: the interface index must not be carried over, the rest may. */
static void keep_address(struct datagram *datagram, struct msghdr *message)
{
  for (struct cmsghdr *at = CMSG_FIRSTHDR(message); at; at = CMSG_NXTHDR(message, at)) {
    if (at->cmsg_level == IPPROTO_IP && at->cmsg_type == IP_PKTINFO) {
      struct in_pktinfo info;

      memcpy(&info, CMSG_DATA(at), sizeof info);
      info.ipi_ifindex = 0;
      info.ipi_spec_dst = info.ipi_addr;
      memcpy(CMSG_DATA(at), &info, sizeof info);
    } else if (at->cmsg_level == IPPROTO_IPV6 && at->cmsg_type == IPV6_PKTINFO) {
      struct in6_pktinfo info;

      memcpy(&info, CMSG_DATA(at), sizeof info);
      info.ipi6_ifindex = 0;
      memcpy(CMSG_DATA(at), &info, sizeof info);
    }
  }
  datagram->control_len = message->msg_controllen;
}

/* Answers now, or makes a copy that lives until the answer is there. */
static void take_query(struct datagram *now)
{
  struct err err = ERR_INIT;
  struct datagram *later;

  if (dns_parse_query((struct span){ .ptr = now->bytes, .len = now->len }, &err, &now->query) < 0)
    return;
  if (now->stub->pending >= LIMITS_DNS_PENDING) {
    stub_tell_limit(now->stub, REASON_LIMIT_LOOKUPS);
    reply(now, &now->query, &(struct dns_answer){ .rcode = DNS_SERVFAIL });
    return;
  }
  later = malloc(sizeof *later);
  if (!later)
    return;
  memcpy(later, now, offsetof(struct datagram, bytes) + now->len);
  /* Anew, so that the question points into the copy. */
  (void)dns_parse_query((struct span){ .ptr = later->bytes, .len = later->len }, &err, &later->query);
  later->stub->pending++;
  (void)stub_ask(later->stub, &later->query, reply_later, later);
}

static void on_udp(void *data, unsigned events)
{
  struct udp *udp = data;
  struct datagram now;

  (void)events;
  for (unsigned i = 0; i < QUERIES_PER_TURN; i++) {
    struct datagram *datagram = &now;
    struct iovec iov = { .iov_base = datagram->bytes, .iov_len = LIMITS_DNS_QUERY_BYTES };
    struct msghdr message = { .msg_name = &datagram->peer,
                              .msg_namelen = sizeof datagram->peer,
                              .msg_iov = &iov,
                              .msg_iovlen = 1,
                              .msg_control = datagram->control,
                              .msg_controllen = sizeof datagram->control };
    ssize_t n = recvmsg(udp->fd, &message, MSG_DONTWAIT);

    if (n < 0)
      return;
    if (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC))
      continue;
    datagram->stub = udp->stub;
    datagram->fd = udp->fd;
    datagram->peer_len = message.msg_namelen;
    datagram->len = (size_t)n;
    keep_address(datagram, &message);
    take_query(datagram);
  }
}

int stub_add_udp(struct stub *stub, int fd, struct err *err)
{
  struct udp *udp = mem_calloc(1, sizeof *udp);
  int r = udp ? fd_set_nonblock(fd, true) : -ENOMEM;

  if (r == 0)
    r = loop_io_new(stub->proxy->loop, fd, on_udp, udp, &udp->io);
  if (r < 0) {
    free(udp);
    fd_close(&fd);
    return err_set_errno(err, -r, "stub: cannot watch the socket");
  }
  udp->stub = stub;
  udp->fd = fd;
  udp->next = stub->sockets;
  stub->sockets = udp;
  loop_io_watch(udp->io, LOOP_READ);
  return 0;
}
