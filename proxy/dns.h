/* dns: the messages of the stub resolver (RFC 1035, 2308, 6891, 9460): queries taken apart, answers put together. Pure.
 *
 * A query has one question of class IN and nothing else but an OPT record. Its name is kept as it was written, for the
 * answer (clients that mix cases compare it byte for byte), and in canonical form, for the judgement. Answers hold
 * addresses that the caller gives, or nothing; no record of another zone ever passes through here.
 */
#ifndef SBX_PROXY_DNS_H
#define SBX_PROXY_DNS_H

#include "policy/host.h"
#include "policy/limits.h"

/* A header, a question, an OPT record without options: the least buffer that dns_build_answer() never finds short. */
#define DNS_ANSWER_MIN_BYTES (12 + 255 + 4 + 11)

enum dns_rcode {
  DNS_NOERROR = 0,
  DNS_FORMERR = 1,
  DNS_SERVFAIL = 2,
  DNS_NXDOMAIN = 3,
  DNS_NOTIMP = 4,
  DNS_REFUSED = 5,
  DNS_BADVERS = 16, /* needs an OPT record; only dns_parse_query() gives it */
};

/* The types that the stub knows by name. */
enum dns_type {
  DNS_TYPE_A = 1,
  DNS_TYPE_AAAA = 28,
  DNS_TYPE_SVCB = 64,
  DNS_TYPE_HTTPS = 65,
};

struct dns_query {
  enum dns_rcode rcode; /* DNS_NOERROR: to be judged; else answer this */
  uint16_t id;
  uint16_t flags; /* of the header: the operation code, RD and CD are given back */
  struct span question; /* as it was written, in the query's bytes; empty when it is not well formed */
  uint16_t type;
  char name[HOST_NAME_MAX_BYTES]; /* labels with dots between them, whatever their bytes; the root is empty */
  size_t name_len;
  bool has_host; /* the name is one that a host can have; NXDOMAIN is right for any other */
  struct host host; /* canonical, HOST_NAME */
  bool has_edns;
  uint16_t udp_size; /* what the client takes over UDP: 512 .. LIMITS_DNS_UDP_BYTES */
};

struct dns_answer {
  enum dns_rcode rcode;
  const struct addr *addrs; /* count of them, all of the family that the query's type asks for */
  size_t count; /* 0: with DNS_NOERROR, the name exists and has no such record */
  uint32_t ttl; /* seconds */
};

/* Parses one message. 0 when it must be answered: where that is not DNS_NOERROR, err has the cause. -EBADMSG when it
 * must not be: no whole header, or itself an answer (two servers could send each other such for ever).
 * FORMERR: any byte too many or too few, a compressed name, a second question or OPT record, other records, bits that a
 * query never has. NOTIMP: not the operation QUERY. REFUSED: a class other than IN. BADVERS: EDNS above version 0. */
int dns_parse_query(struct span message, struct err *err, struct dns_query *ret_query);

/* Writes the answer to a query into out. Its length; -ENOSPC when not even the question fits in size bytes; -EINVAL
 * when an address is not of the family that was asked for. Where only the addresses do not fit, none is written and the
 * TC bit is set, so size is min(query->udp_size, room) over UDP and as large as DNS goes over TCP. */
int dns_build_answer(const struct dns_query *query, const struct dns_answer *answer, char *out, size_t size);

/* Takes one message off the front of what came over TCP (RFC 7766): 1 with the message and the bytes it takes, length
 * included; 0 when more is needed; -EBADMSG when it is too short to be answered; -E2BIG past LIMITS_DNS_QUERY_BYTES. */
int dns_frame_scan(struct span bytes, struct err *err, struct span *ret_message, size_t *ret_len);

/* The length that goes in front of a message of len bytes, at most 65535, over TCP. */
void dns_frame_encode(size_t len, char out[static 2]);

#endif
