/* limits: every ceiling of the programs in one place. Bytes unless the name says otherwise. */
#ifndef SBX_POLICY_LIMITS_H
#define SBX_POLICY_LIMITS_H

/* Policy language. */
#define LIMITS_POLICY_BYTES (1024 * 1024) /* one policy file */
#define LIMITS_POLICY_PRINT_BYTES (8 * 1024 * 1024) /* the canonical text of a merged policy */
#define LIMITS_POLICY_ITEMS 65536 /* values of all layers together */
#define LIMITS_POLICY_DEPTH 8 /* nesting of objects and lists in a policy file */
#define LIMITS_ENV_NAME_BYTES 256
#define LIMITS_METHOD_BYTES 32 /* one method of a rule */
#define LIMITS_RULE_METHODS 64 /* methods of one rule */
#define LIMITS_RULE_PATHS 256 /* paths of one rule */
#define LIMITS_RULE_PATH_BYTES 1024 /* one path of a rule */
#define LIMITS_REQUEST_PATH_BYTES 2048 /* a request's path, without its query, that can be judged and told */
#define LIMITS_PIDS 4194304 /* the kernel's PID_MAX_LIMIT */
#define LIMITS_PATH_BYTES 4096 /* PATH_MAX */

/* Patterns of filesystem.hide. */
#define LIMITS_HIDE_ENTRIES 1000000 /* directory entries looked at for one pattern */
#define LIMITS_HIDE_MATCHES 4096 /* matches of all patterns */

/* Ports inside. */
#define LIMITS_FREE_PORT 1024 /* the first that an unprivileged program may listen on */
#define LIMITS_RULE_PORTS 16 /* of one rule that the transparent path listens on */

/* The proxy that the host has to use. */
#define LIMITS_UPSTREAM_BYTES 1024 /* its URL, with user and password */
#define LIMITS_NO_PROXY_BYTES 8192

/* Credentials. */
#define LIMITS_CREDENTIALS 32 /* of one policy */
#define LIMITS_CREDENTIAL_NAME_BYTES 64 /* its name, and that of its header, parameter or user */
#define LIMITS_CREDENTIAL_ATTRIBUTES 16 /* of an item of the Secret Service */
#define LIMITS_CREDENTIAL_HOSTS 64 /* that one is bound to */
#define LIMITS_CREDENTIAL_ENV 16 /* variables that hold its placeholder */
#define LIMITS_CREDENTIAL_FILES 8 /* files that are shown with its placeholder */
#define LIMITS_CREDENTIAL_FILES_ALL 24 /* of all credentials together */
#define LIMITS_CREDENTIAL_FILE_BYTES (256 * 1024) /* one of them */
#define LIMITS_CREDENTIAL_FILE_VALUE 8 /* a shorter value cannot be told from other text in it */
#define LIMITS_SECRET_BYTES 8192 /* one value */
#define LIMITS_SECRET_OUTPUT_BYTES 16384 /* what a program prints in all */
#define LIMITS_SECRET_FRESH_MS 10000 /* a value that came so lately is not asked for anew, whoever refuses it */
#define LIMITS_SECRET_RETRY_MS 2000 /* nor a source that failed so lately; twice as long after each more, */
#define LIMITS_SECRET_RETRY_DOUBLES 6 /* up to 64 s */
#define LIMITS_SECRET_VALID_MS 1000 /* a source is not asked more often, whatever it says of its value */
#define LIMITS_SECRET_MARGIN_MS 15000 /* so long before it expires a value is too old */
#define LIMITS_SECRET_FORMER 32 /* values that a credential has had, which origins may still send back */
#define LIMITS_SECRET_WORDS 3 /* of a value that is made of several: key id, secret key, token */
#define LIMITS_PLACEHOLDER_BYTES 256

/* Plan. */
#define LIMITS_PLAN_OPS 65536 /* operations of one plan */
#define LIMITS_LATE_BYTES (8 * 1024 * 1024) /* a file that is made when the rest of the sandbox stands */
#define LIMITS_NSS_BYTES (1024 * 1024) /* a file of the database that certutil makes, */
#define LIMITS_NSS_MS 3000 /* and how long it may take from when it has the certificate */

/* Proxy: per connection. */
#define LIMITS_HTTP_HEAD_BYTES (64 * 1024) /* a whole request or response head */
#define LIMITS_HTTP_FIELDS 256 /* header fields of one head */
#define LIMITS_KEPT_BODY_BYTES (16 * 1024 * 1024) /* the body of a request that is kept until its hash is known */
#define LIMITS_TLS_HELLO_BYTES (16 * 1024) /* a whole ClientHello with the headers of its records */
#define LIMITS_TLS_EXTENSIONS 128 /* extensions of one ClientHello */
#define LIMITS_TLS_RECORD_BYTES 16384 /* of data in one record (RFC 8446, 5.1) */
#define LIMITS_TLS_END_BYTES (32 * 1024) /* what one end of a terminated connection is taken to hold */
#define LIMITS_H2_STREAMS 100 /* requests at once on a connection of HTTP/2 */
#define LIMITS_H2_SESSION_BYTES (8 * 1024 * 1024) /* what nghttp2 holds for both ends of one */
#define LIMITS_H2_WINDOW_BYTES \
  (1024 * 1024) /* of a body's bytes that may be on their way, and wait, in one direction */
#define LIMITS_H2_WIDE_STREAMS 4 /* bodies that may have so many at once; the others 64 KiB */
#define LIMITS_H2_CONTINUATIONS 6 /* frames that go on with one header list */
#define LIMITS_H2_IDLE_FRAMES 1000 /* in a second that bring nothing: pings, settings, empty ones */
#define LIMITS_H2_RESETS 500 /* requests that the client takes back at once, */
#define LIMITS_H2_RESET_EVERY_MS 20 /* and after them one in this time */
#define LIMITS_DNS_QUERY_BYTES 4096 /* one query to the stub */
#define LIMITS_DNS_UDP_BYTES 1232 /* one answer over UDP: passes every path unfragmented (DNS flag day 2020) */
#define LIMITS_PARENT_BYTES (16 * 1024) /* a parent proxy's answer to CONNECT */
#define LIMITS_RELAY_BYTES \
  (64 * 1024) /* one read of a relay, and what it holds for a slow reader when bytes are short */
#define LIMITS_SPLICE_BYTES (1024 * 1024) /* one move of a long stream, and the most that its slow reader leaves over */

/* Proxy: per run. */
#define LIMITS_CONNECTIONS 20000 /* open client connections */
#define LIMITS_DIALS 4096 /* connections that are being made, names being resolved for them included */
#define LIMITS_DNS_PENDING 256 /* lookups over UDP that wait for a listener */
#define LIMITS_DNS_CLIENTS 64 /* connections to the stub */
#define LIMITS_PROXY_BYTES (128 * 1024 * 1024) /* held for all connections together, beside what the kernel holds */
#define LIMITS_ROOTS_BYTES (16 * 1024 * 1024) /* the file of the authorities that the host trusts */
#define LIMITS_ADDRESSES 16 /* addresses of one name that are tried */
#define LIMITS_NAMES 65536 /* names that have synthetic addresses */
#define LIMITS_NAMES_LATER 16383 /* the same, of a proxy that takes the place of one that died */
#define LIMITS_PROXY_STARTS 5 /* a proxy that dies again and again is not replaced for ever */
#define LIMITS_LISTENERS 1024 /* ports that the proxy asks to be listened on while the command runs */
#define LIMITS_DENIALS 256 /* distinct denials remembered for the summary */
#define LIMITS_LEAVES 256 /* certificates for terminated targets that are kept */
#define LIMITS_ASK_QUESTIONS 256 /* distinct questions to the user */
#define LIMITS_ASK_PENDING 16 /* of them waiting for an answer */
#define LIMITS_AUDIT_BYTES (16 * 1024 * 1024) /* one audit file */
#define LIMITS_AUDIT_QUEUE_BYTES (4 * 1024 * 1024) /* lines that wait for the audit's reader, where it has one */
#define LIMITS_AUDIT_RUN_BYTES (8 * 1024 * 1024) /* of one run in it; a file without room for that is rotated */

/* Questions to the user (--ask), in sbx. */
#define LIMITS_ASK_MS 60000 /* for the answer */
#define LIMITS_ASK_BURST 8 /* questions at once, */
#define LIMITS_ASK_EVERY_MS 5000 /* and after them one in this time */
#define LIMITS_ASK_LINE_BYTES 4096 /* one line of an IDE */

/* Proxy: deadlines in milliseconds. */
#define LIMITS_HEAD_MS 30000 /* from the first byte of a request head to its last */
#define LIMITS_FIRST_MS 1000 /* for the first bytes of a transparent client that is refused, or the rest of a line */
#define LIMITS_RESOLVE_MS 10000
#define LIMITS_CONNECT_MS 15000 /* one address */
#define LIMITS_REACH_MS 60000 /* a whole connect: names, addresses, and what a parent proxy needs to connect */
#define LIMITS_IDLE_MS 3600000 /* a relay without a byte in either direction */
#define LIMITS_HALF_CLOSED_MS 300000 /* the same, once one side has ended its direction */
#define LIMITS_LINGER_MS 2000 /* for the client to read a last answer and close */

#endif
