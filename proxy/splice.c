/* Theory of operation
 *
 * splice(2) moves references to the pages that a socket has received into a pipe, and from there into another socket:
 * of a long stream no byte is copied. There is one pipe for all connections. A move fills and empties it:
 *
 *   1. from the source into the pipe, as much as there is and the pipe takes
 *   2. from the pipe into the sink, as much as its kernel buffer takes
 *   3. the rest, if any, is copied from the pipe to the sink's queue, where it waits as all bytes do (sock.h)
 *
 * So the pipe is empty between two moves, 10,000 tunnels need no more pipes than one does, and there is one place only
 * where bytes wait. The price is step 3 for a sink that is slower than its source; the caller keeps max small for it.
 *
 * Bytes that stayed in the pipe would reach the next connection, which may be another's. A pipe that cannot be emptied
 * is closed for good, and everything is copied from then on.
 *
 * A page that was moved may still be its sender's: a program inside that sent it by sendfile(2) or vmsplice(2) can
 * change it until it has arrived. What is judged is always copied first (relay.c holds it, http.c reads it); what is
 * moved here is not looked at any more.
 */
#include "proxy/splice.h"

#include "base/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

void splice_open(struct splice *pipe)
{
  int fds[2];
  int size = 0;

  if (pipe2(fds, O_NONBLOCK | O_CLOEXEC))
    return;
  /* fs.pipe-max-size and fs.pipe-user-pages-soft of pipe(7) may not allow it. */
  for (int want = LIMITS_SPLICE_BYTES; size <= 0 && want >= LIMITS_RELAY_BYTES * 2; want /= 2)
    size = fcntl(fds[1], F_SETPIPE_SZ, want);
  *pipe = (struct splice){ .out = fds[0], .in = fds[1], .size = size > 0 ? (size_t)size : 1 };
  if (size <= 0)
    splice_close(pipe);
}

void splice_close(struct splice *pipe)
{
  if (!pipe->size)
    return;
  fd_close(&pipe->in);
  fd_close(&pipe->out);
  *pipe = (struct splice){ .size = 0 };
}

/* Empties the pipe of left bytes: to the sink's queue, or to nowhere once it has failed. */
static int queue_rest(struct splice *pipe, struct sock *to, size_t left, char *scratch, size_t scratch_size, int error)
{
  while (left) {
    ssize_t n = read(pipe->out, scratch, left < scratch_size ? left : scratch_size);

    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0) {
      splice_close(pipe);
      return error ? error : -EIO;
    }
    if (!error)
      error = sock_send(to, (struct span){ .ptr = scratch, .len = (size_t)n }, false);
    left -= (size_t)n;
  }
  return error;
}

ssize_t splice_move(struct splice *pipe, struct sock *from, struct sock *to, size_t max, char *scratch,
                    size_t scratch_size, int *ret_error)
{
  ssize_t got = sock_splice_recv(from, pipe->in, max < pipe->size ? max : pipe->size);
  ssize_t sent;

  *ret_error = 0;
  if (got <= 0)
    return got;
  sent = sock_splice_send(to, pipe->out, (size_t)got);
  if (sent < got)
    *ret_error =
        queue_rest(pipe, to, (size_t)(got - (sent > 0 ? sent : 0)), scratch, scratch_size, sent < 0 ? (int)sent : 0);
  return got;
}
