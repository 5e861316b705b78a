/* control: what sbx and sbx-proxy say to each other.
 *
 * A SOCK_SEQPACKET socketpair(2); the proxy finds its end as descriptor CONTROL_FD. One struct is one message; both
 * programs are of one build, so the structs are the format and there is nothing to marshal.
 *
 *   who          message           when                                  with
 *   sbx -> proxy CONTROL_START     once, first                           descriptors, in this order: the policy
 *                                                                        (sealed memfd, canonical text with origins),
 *                                                                        the audit file (write-only, O_APPEND), then
 *                                                                        one listening socket per entry of fronts
 *   sbx -> proxy CONTROL_PARENTS   once, after START, where that says    -
 *                                  so; it may hold a login
 *   sbx -> proxy CONTROL_PLACEHOLDERS  once, after PARENTS, where the    -
 *                                  policy has credentials
 *   proxy -> sbx CONTROL_CA        once, before READY, by sbx-proxy-tls  -
 *   proxy -> sbx CONTROL_READY     once, after it has confined itself    -
 *   proxy -> sbx CONTROL_FAILED    instead of READY; then it exits       message
 *   proxy -> sbx CONTROL_DENIED    any time after READY, when the socket -
 *                                  has room
 *   proxy -> sbx CONTROL_TOTALS    once, last                            -
 *   proxy -> sbx CONTROL_LISTEN    any time after READY; at most one of  -
 *                                  it and CONTROL_SOCKETS is open
 *   proxy -> sbx CONTROL_SOCKETS   the same                              -
 *   sbx -> proxy CONTROL_MADE      the answer to each of these two       up to two sockets: IPv4, then IPv6
 *   proxy -> sbx CONTROL_ASK       any time after READY, where START     -
 *                                  has ask; LIMITS_ASK_PENDING are
 *                                  open at most
 *   sbx -> proxy CONTROL_ANSWER    the answer to each CONTROL_ASK, in    -
 *                                  any order, after a bounded time
 *   proxy -> sbx CONTROL_WANT      any time after READY; one per         -
 *                                  credential is open at most
 *   sbx -> proxy CONTROL_SECRET    the answer to each CONTROL_WANT, in   -
 *                                  any order, after a bounded time
 *   sbx -> proxy end of file       any time: the proxy writes what it    -
 *                                  owes the audit and exits 0
 *
 * sbx trusts the sizes of what it receives (SEQPACKET keeps them) and nothing else: text is NUL-terminated by the
 * receiver and escaped before it is shown.
 */
#ifndef SBX_SYS_CONTROL_H
#define SBX_SYS_CONTROL_H

#include <stdint.h>

#define CONTROL_FD 3
#define CONTROL_FRONTS_MAX 56
#define CONTROL_RUN_ID_BYTES 24

enum control_type {
  CONTROL_START = 1,
  CONTROL_READY,
  CONTROL_FAILED,
  CONTROL_DENIED,
  CONTROL_LISTEN,
  CONTROL_SOCKETS,
  CONTROL_MADE,
  CONTROL_ASK,
  CONTROL_ANSWER,
  CONTROL_PARENTS,
  CONTROL_TOTALS,
  CONTROL_PLACEHOLDERS,
  CONTROL_WANT,
  CONTROL_SECRET,
  CONTROL_CA,
};

enum control_front {
  CONTROL_FRONT_HTTP = 1, /* absolute-form requests and CONNECT */
  CONTROL_FRONT_SOCKS5,
  CONTROL_FRONT_TRANSPARENT,
  CONTROL_FRONT_DNS_UDP,
  CONTROL_FRONT_DNS_TCP,
  CONTROL_FRONT_FORWARD, /* a port of the host's loopback: ports has which */
  CONTROL_FRONT_PUBLISH, /* listens on the host's loopback; a port of the sandbox's: ports has which */
  CONTROL_FRONT_REFUSED, /* listens for nothing: hears what the kernel has refused (netns.h) */
};

struct control_start {
  uint32_t type;
  uint32_t front_count;
  uint32_t fronts[CONTROL_FRONTS_MAX]; /* enum control_front of the listener in the same place */
  uint16_t ports[CONTROL_FRONTS_MAX]; /* CONTROL_FRONT_FORWARD and CONTROL_FRONT_PUBLISH only */
  uint32_t has_v6; /* IPv6 addresses are local to the sandbox as well */
  uint32_t parents; /* CONTROL_PARENTS follows */
  uint32_t generation; /* proxies of this run that died before; below LIMITS_PROXY_STARTS */
  uint32_t ask; /* the user can be asked about a target that no rule names */
  char run_id[CONTROL_RUN_ID_BYTES]; /* names the run in the audit; NUL-terminated */
};

/* The proxies that the host has to use: URLs in the form of policy/upstream.h, or "". NUL-terminated. */
struct control_parents {
  uint32_t type;
  char http[1024]; /* for http:// requests and port 80 */
  char other[1024];
  char no_proxy[8192];
};

/* Asks for listeners of the transparent front inside, on one port of two synthetic addresses. */
struct control_listen {
  uint32_t type;
  uint16_t port; /* 1024..65535 */
  uint8_t v4[4]; /* network order */
  uint8_t v6[16];
};

/* Asks for TCP sockets of the sandbox's network that neither are bound nor listen, one of each family that it has: the
 * proxy connects them to a published port. */
struct control_sockets {
  uint32_t type;
};

struct control_made {
  uint32_t type;
  int32_t error; /* 0, or the errno why there are none */
};

struct control_failed {
  uint32_t type;
  char message[1024];
};

struct control_denied {
  uint32_t type;
  uint32_t reason; /* enum reason of policy/decide.h */
  uint32_t port; /* 0 where the request named none */
  uint32_t count; /* how many equal ones this stands for */
  char host[256]; /* as the client named it, canonical where it could be parsed */
  char request[192]; /* what of a request was refused, "POST /path"; empty where the target itself was */
  char fix[512]; /* decide_fix_request(); of a failure the cause, where it is not plain from the reason */
};

/* What a run that asked for too much has not been told of one by one. */
struct control_totals {
  uint32_t type;
  uint32_t more; /* denials and failures that CONTROL_DENIED has not told */
  uint32_t unaudited; /* lines that the audit had no room for */
  uint32_t unread; /* lines that the audit's reader did not take in time */
  uint32_t in_bodies; /* requests in whose body a placeholder went as it is */
  uint32_t scrubbed; /* values of credentials that were taken out of responses */
};

/* Asks whether a target may be reached. */
struct control_ask {
  uint32_t type;
  uint32_t id; /* not used before by this proxy */
  uint32_t reason; /* enum reason of policy/decide.h */
  uint32_t port;
  char host[256]; /* canonical */
};

/* What the user says. The rule is sbx's, made from the host and port that were asked about, and parsed by the proxy as
 * every rule is. */
struct control_answer {
  uint32_t type;
  uint32_t id;
  uint32_t asked; /* enum decide_asked of policy/decide.h */
  char rule[320]; /* NUL-terminated */
};

#define CONTROL_CREDENTIALS_MAX 32

/* What stands inside in place of the values, in the order of the policy's credentials. Worthless, but another in every
 * project, so not part of the policy. NUL-terminated. */
struct control_placeholders {
  uint32_t type;
  uint32_t count;
  char placeholders[CONTROL_CREDENTIALS_MAX][257];
};

/* Asks for a value. stale: the one that was sent last was refused (401), or has expired. */
struct control_want {
  uint32_t type;
  uint32_t index; /* of the policy's credentials */
  uint32_t stale;
};

/* A value, or why there is none. The receiver wipes it. */
struct control_secret {
  uint32_t type;
  uint32_t index;
  uint32_t len; /* of value; 0: there is none, and error says why */
  uint32_t valid_ms; /* from now on; 0: as long as the run lasts */
  char error[512]; /* holds nothing of the value */
  char value[8192]; /* the message ends where it does */
};

/* The certificate of the CA that this proxy has made for the run: it signs what a terminated connection shows to the
 * client. Its key never leaves the proxy, so a proxy that is started anew has another CA. */
struct control_ca {
  uint32_t type;
  uint32_t len; /* of pem */
  char pem[4096];
};

#endif
