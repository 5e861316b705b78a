# Turns text files into C: one array of characters per file, a table of them and a list of their names. Arrays, because
# ISO C promises no string literals longer than 4,095 bytes. Portable awk; ASCII only, and it says so when it is not.
#   awk -f embed.awk FILE... > OUT

function fail(cause) {
  print FILENAME ":" FNR ": " cause > "/dev/stderr"
  failed = 1
  exit 1
}

BEGIN {
  for (i = 32; i < 127; i++)
    known[sprintf("%c", i)] = 1
  print "/* Made by build-aux/embed.awk. */"
}

FNR == 1 {
  if (count > 0)
    print "};"
  name = FILENAME
  sub(/.*\//, "", name)
  sub(/\.[^.]*$/, "", name)
  if (name !~ /^[a-z][a-z0-9]*$/)
    fail("a file name that makes no C name")
  names[++count] = name
  print "static const char profiles_" name "[] = {"
}

{
  line = ""
  for (i = 1; i <= length($0); i++) {
    char = substr($0, i, 1)
    if (!(char in known))
      fail("a byte that is not printable ASCII")
    if (char == "'" || char == "\\")
      char = "\\" char
    line = line "'" char "',"
  }
  print line "'\\n',"
}

END {
  if (failed)
    exit 1
  if (count == 0)
    exit 1
  print "};"
  print "static const struct profile profiles_table[] = {"
  for (i = 1; i <= count; i++)
    print "  { \"" names[i] "\", profiles_" names[i] ", sizeof profiles_" names[i] " },"
  print "};"
  print "static const char *const profiles_name_list[] = {"
  for (i = 1; i <= count; i++)
    print "  \"" names[i] "\","
  print "  NULL,"
  print "};"
}
