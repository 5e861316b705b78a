/* splice: bytes from one socket to another by way of a pipe, without copying them (see splice.c). */
#ifndef SBX_PROXY_SPLICE_H
#define SBX_PROXY_SPLICE_H

#include "proxy/sock.h"

/* The pipe. All zero: there is none. Empty whenever splice_move() is not running. */
struct splice {
  int in; /* the end that is written to */
  int out;
  size_t size; /* bytes that it can take at once, more or less; 0: there is none */
};

/* Opens the pipe, non-blocking. Where the system refuses one of a useful size there is none, and bytes have to be
 * copied. To be called before the process confines itself, which leaves no call that makes pipes; SIGPIPE must be
 * ignored from then on, as splice(2) has no MSG_NOSIGNAL. */
void splice_open(struct splice *pipe);
void splice_close(struct splice *pipe);

/* Moves at most max bytes of what from has to to, whose queue must be empty; there must be a pipe. What the kernel does
 * not take for to is copied to its queue, by way of scratch. The count of what was read, or what sock_splice_recv()
 * returns; *ret_error is 0, or what sock_send() would have returned. */
ssize_t splice_move(struct splice *pipe, struct sock *from, struct sock *to, size_t max, char *scratch,
                    size_t scratch_size, int *ret_error);

#endif
