/* credential_word: values and placeholders that are made of several words. Pure. */
#ifndef SBX_POLICY_CREDENTIAL_WORD_H
#define SBX_POLICY_CREDENTIAL_WORD_H

#include "base/span.h"

/* Values and placeholders of POLICY_PLACE_SIGV4 are words with one space between them, in this order. */
enum credential_word {
  CREDENTIAL_KEY_ID, /* visible ASCII without '/', ',' and '=' */
  CREDENTIAL_SECRET_KEY,
  CREDENTIAL_TOKEN, /* of the session: may be missing, and is in a placeholder */
};

/* One word; empty where there is none. */
struct span credential_word(struct span text, enum credential_word word);

#endif
