noinst_LIBRARIES += libengine.a
libengine_a_SOURCES = \
  src/engine/bwrap.c \
  src/engine/engine.h
