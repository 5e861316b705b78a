noinst_LIBRARIES += libengine.a
libengine_a_SOURCES = \
  src/engine/bwrap.c \
  src/engine/bwrap_args.c src/engine/bwrap_args.h \
  src/engine/engine.h
