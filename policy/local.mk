noinst_LIBRARIES += libpolicy.a
libpolicy_a_CFLAGS = $(AM_CFLAGS) $(JSONC_CFLAGS)
libpolicy_a_SOURCES = \
  policy/addr.c policy/addr.h \
  policy/credential.c policy/credential.h \
  policy/credential_member.c policy/credential_member.h \
  policy/credential_preset.c \
  policy/credential_word.c policy/credential_word.h \
  policy/credential_print.c \
  policy/credential_tool.c policy/credential_tool.h \
  policy/reserved.c policy/reserved.h \
  policy/credentials.c policy/credentials.h \
  policy/decide.c policy/decide.h \
  policy/decide_fix.c \
  policy/doc.c policy/doc.h \
  policy/doc_fault.c policy/doc_fault.h \
  policy/doc_print.c \
  policy/fields.c policy/fields.h \
  policy/fspath.c policy/fspath.h \
  policy/host.c policy/host.h \
  policy/inject_find.c policy/inject_find.h \
  policy/keys.c policy/keys.h \
  policy/layers.c policy/layers.h \
  policy/limits.h \
  policy/load.c policy/load.h \
  policy/loadfile.c \
  policy/merge.c policy/merge.h \
  policy/policy.c policy/policy.h \
  policy/print.c policy/print.h \
  policy/profiles.c policy/profiles.h \
  policy/request.c policy/request.h \
  policy/rule.c policy/rule.h \
  policy/rule_object.c policy/rule_object.h \
  policy/stand_in.c policy/stand_in.h \
  policy/upstream.c policy/upstream.h \
  policy/validate.c policy/validate.h \
  policy/value.c policy/value.h

policy_profiles = \
  policy/profiles/claude.json \
  policy/profiles/codex.json \
  policy/profiles/default.json \
  policy/profiles/git.json \
  policy/profiles/go.json \
  policy/profiles/node.json \
  policy/profiles/offline.json \
  policy/profiles/python.json \
  policy/profiles/rust.json \
  policy/profiles/strict.json

profilesdir = $(pkgdatadir)/profiles
dist_profiles_DATA = $(policy_profiles)
schemadir = $(pkgdatadir)/schema
dist_schema_DATA = policy/schema/sbx-policy.schema.json
EXTRA_DIST += build-aux/embed.awk

# The profiles are part of the program: it works where nothing is installed.
policy/profiles.inc: $(policy_profiles) build-aux/embed.awk
	$(AM_V_GEN)$(MKDIR_P) policy && \
	  (cd $(srcdir) && $(AWK) -f build-aux/embed.awk $(policy_profiles)) > $@.tmp && mv $@.tmp $@
policy/libpolicy_a-profiles.$(OBJEXT): policy/profiles.inc
BUILT_SOURCES += policy/profiles.inc
CLEANFILES += policy/profiles.inc policy/profiles.inc.tmp
