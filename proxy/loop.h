/* loop: the event loop: readiness of descriptors, and timers. The one module that includes libuv's header.
 *
 * One thread. Callbacks run from loop_run() only. An object may be freed at any time, also from its own callback; its
 * memory goes when the loop has let go of it, and no callback comes after the free.
 */
#ifndef SBX_PROXY_LOOP_H
#define SBX_PROXY_LOOP_H

#include "base/err.h"

#include <stdint.h>

/* What a descriptor is ready for, or what is waited for. */
#define LOOP_READ 1u
#define LOOP_WRITE 2u

struct loop;
struct loop_io;
struct loop_timer;

/* Everything that the loop needs of the system is opened here. 0 or -errno. */
int loop_new(struct err *err, struct loop **ret_loop);
/* All watches and timers must have been freed. */
void loop_free(struct loop *loop);

/* Runs until loop_stop(). */
void loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* Milliseconds of the monotonic clock, as of the start of this turn of the loop. */
uint64_t loop_now_ms(const struct loop *loop);

/* Watches fd, at first for nothing. ready(data, events) is told LOOP_READ and LOOP_WRITE together when the socket is in
 * error, on each turn that it is watched: the next recv(2) or send(2) says which error it is, or the one after what
 * came before it. fd stays the caller's, must be non-blocking, and must be closed only after loop_io_free(). 0 or
 * -errno. */
int loop_io_new(struct loop *loop, int fd, void (*ready)(void *data, unsigned events), void *data,
                struct loop_io **ret_io);
/* Sets what is waited for; 0 is nothing. Costs nothing when it does not change. */
void loop_io_watch(struct loop_io *io, unsigned events);
/* ready is told LOOP_READ in the next turn of the loop, whatever the system says: bytes wait above the descriptor. */
void loop_io_again(struct loop_io *io);
/* From now on ready is told other data. */
void loop_io_own(struct loop_io *io, void *data);
/* Stops and frees *io, and makes it NULL. NULL is fine. */
void loop_io_free(struct loop_io **io);

/* A timer that is off. 0 or -ENOMEM. */
int loop_timer_new(struct loop *loop, void (*expired)(void *data), void *data, struct loop_timer **ret_timer);
/* Fires once, delay_ms from now; replaces what was set. */
void loop_timer_set(struct loop_timer *timer, uint64_t delay_ms);
void loop_timer_stop(struct loop_timer *timer);
void loop_timer_free(struct loop_timer **timer);

#endif
