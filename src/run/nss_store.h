/* nss_store: the database of certificates (NSS) that Chromium and its like read, with the CA of the run in it, made by
 * certutil(1). */
#ifndef SBX_RUN_NSS_STORE_H
#define SBX_RUN_NSS_STORE_H

#include "base/buf.h"
#include "base/err.h"

#include <sys/types.h>

#define NSS_STORE_FILES 3

struct nss_store {
  pid_t pid; /* certutil, or -1 */
  int in; /* where it reads the certificate from */
  int said; /* where it writes what it has to say */
  char *dir; /* where it makes the database */
  struct buf files[NSS_STORE_FILES]; /* what nss_store_finish() has read; empty before */
};

#define NSS_STORE_INIT { .pid = -1, .in = -1, .said = -1, .dir = NULL }

/* Starts certutil, an absolute path, which gets ready and waits for a certificate. 0; or -errno. Whatever comes out,
 * nss_store_free() is called in the end. */
int nss_store_begin(const char *certutil, struct err *err, struct nss_store *store);

/* Gives it the certificate, in PEM, waits for its end, and reads what it has made. 0; -ETIME where it takes more than
 * LIMITS_NSS_MS; -EIO where it fails, with the first line of what it said in err; or another -errno. */
int nss_store_finish(struct nss_store *store, struct span certificate, struct err *err);

/* The contents of one of the files, by its name. Empty where there is none: NSS takes an empty file for a database that
 * has nothing in it. */
struct span nss_store_file(const struct nss_store *store, const char *name);

/* Kills certutil, should it run, and removes its directory. */
void nss_store_free(struct nss_store *store);
#define nss_store_autofree MEM_CLEANUP(nss_store_free)

#endif
