/* values: the values of credentials, as far as sbx has handed them over, and who waits for them (see values.c). */
#ifndef SBX_PROXY_VALUES_H
#define SBX_PROXY_VALUES_H

#include "proxy/inject.h"
#include "proxy/proxy.h"
#include "sys/control.h"

struct values;
struct values_waiter;

/* For the policy's credentials, whose placeholders these are. 0; -EPROTO where they are not as control.h has them;
 * -ENOMEM. */
int values_new(struct proxy *proxy, const struct control_placeholders *placeholders, struct err *err,
               struct values **ret_values);
/* Wipes them. Nobody may wait any more. */
void values_free(struct values *values);

/* All credentials, in the order of the policy; the values are good until control goes back to the loop. */
const struct inject_secret *values_list(const struct values *values, size_t *ret_count);

/* The same, and with each the last values that it has had before, which an origin may still send back: to a request
 * that is under way for long, or in what it keeps of its clients. */
const struct inject_secret *values_known(const struct values *values, size_t *ret_count);

/* Asks for what is missing of wanted, or has expired. 1: all are there; 0: *slot is set, and done(data, error) is told
 * later, never from within this call: error is NULL, or says of one that is not to be had its credential's name and
 * what its source says; -ENOMEM. */
int values_want(struct values *values, inject_set wanted, void (*done)(void *data, const char *error), void *data,
                struct values_waiter **slot);

/* The same for values that an origin has refused: all of them are asked for anew. 0 or -ENOMEM. */
int values_renew(struct values *values, inject_set wanted, void (*done)(void *data, const char *error), void *data,
                 struct values_waiter **slot);

/* Changes whenever one of wanted does. */
uint64_t values_version(const struct values *values, inject_set wanted);

/* No longer waits; NULL is fine. */
void values_cancel(struct values_waiter **slot);

/* What sbx has answered. The caller wipes the message. */
void values_answer(struct values *values, const struct control_secret *message);

/* The control socket has room again. */
void values_flush(struct values *values);

/* The names of a set, separated by commas. */
void values_print(const struct values *values, inject_set set, struct buf *out);

#endif
