#include "proxy/dns.h"

#include "base/mem.h"
#include "proxy/bytes.h"

#include <errno.h>

#define HEADER_BYTES 12
#define NAME_MAX_BYTES 255 /* RFC 1035, 2.3.4, with the root's zero: HOST_NAME_MAX_BYTES as text */
#define LABEL_MAX_BYTES 63
#define CLASS_IN 1
#define TYPE_OPT 41
#define UDP_MIN_BYTES 512

#define FLAG_QR 0x8000
#define FLAG_OPCODE 0x7800
#define FLAG_TC 0x0200
#define FLAG_RD 0x0100
#define FLAG_RA 0x0080
#define FLAG_CD 0x0010
/* AA, TC, RA, Z and a response code: of answers only. */
#define FLAGS_OF_ANSWERS 0x06cf

/* Fills the names. A dot within a label would make another name of it, so such a name is no host's. */
static void read_name(struct span labels, struct dns_query *query)
{
  struct span label;
  struct host host;
  bool dotted = false;

  while (bytes_take_vector8(&labels, &label) && label.len > 0) {
    dotted = dotted || span_find(label, '.') < label.len;
    if (query->name_len > 0)
      query->name[query->name_len++] = '.';
    memcpy(query->name + query->name_len, label.ptr, label.len);
    query->name_len += label.len;
  }
  if (dotted || host_parse((struct span){ query->name, query->name_len }, NULL, &host) < 0 || host.kind != HOST_NAME)
    return;
  query->has_host = true;
  query->host = host;
}

/* Takes a name without compression off *rest. */
static int take_name(struct span *rest, struct err *err, struct span *ret_labels)
{
  struct span after = *rest;
  struct span label;

  do {
    if (after.len > 0 && (unsigned char)after.ptr[0] > LABEL_MAX_BYTES)
      return err_set(err, EBADMSG, "the question has a compressed name or a label of more than %d bytes",
                     LABEL_MAX_BYTES);
    if (!bytes_take_vector8(&after, &label))
      return err_set(err, EBADMSG, "the question's name has no end");
    if (rest->len - after.len > NAME_MAX_BYTES)
      return err_set(err, EBADMSG, "the question's name has more than %d bytes", NAME_MAX_BYTES);
  } while (label.len > 0);
  *ret_labels = span_sub(*rest, 0, rest->len - after.len);
  *rest = after;
  return 0;
}

static int take_question(struct span *rest, struct err *err, unsigned *ret_class, struct dns_query *query)
{
  struct span after = *rest;
  struct span labels;
  unsigned type;
  int r;

  r = take_name(&after, err, &labels);
  if (r < 0)
    return r;
  if (!bytes_take_u16(&after, &type) || !bytes_take_u16(&after, ret_class))
    return err_set(err, EBADMSG, "the question ends after its name");
  query->question = span_sub(*rest, 0, rest->len - after.len);
  query->type = (uint16_t)type;
  read_name(labels, query);
  *rest = after;
  return 0;
}

/* OPT (RFC 6891, 6.1.2). Its class is a size, its TTL holds the version. DO asks for signatures, of which there are
 * none; no option needs an answer. */
static int take_opt(struct span *rest, struct err *err, unsigned *ret_version, struct dns_query *query)
{
  unsigned root;
  unsigned type;
  unsigned size;
  uint32_t ttl;
  struct span options;
  struct span value;
  unsigned code;

  if (!bytes_take_u8(rest, &root) || root != 0 || !bytes_take_u16(rest, &type) || type != TYPE_OPT)
    return err_set(err, EBADMSG, "a record that is not EDNS's");
  if (!bytes_take_u16(rest, &size) || !bytes_take_u32(rest, &ttl) || !bytes_take_vector16(rest, &options))
    return err_set(err, EBADMSG, "the EDNS record is not well formed");
  while (options.len > 0)
    if (!bytes_take_u16(&options, &code) || !bytes_take_vector16(&options, &value))
      return err_set(err, EBADMSG, "the EDNS options are not well formed");
  query->has_edns = true;
  if (size > query->udp_size)
    query->udp_size = (uint16_t)(size < LIMITS_DNS_UDP_BYTES ? size : LIMITS_DNS_UDP_BYTES);
  *ret_version = ttl >> 16 & 0xff;
  return 0;
}

static enum dns_rcode parse_body(struct span rest, struct err *err, struct dns_query *query)
{
  unsigned counts[4];
  unsigned class;
  unsigned version = 0;

  for (size_t i = 0; i < MEM_COUNT(counts); i++)
    if (!bytes_take_u16(&rest, &counts[i]))
      return DNS_FORMERR;
  if (query->flags & FLAG_OPCODE) {
    err_set(err, EBADMSG, "operation %d is not a query", (query->flags & FLAG_OPCODE) >> 11);
    return DNS_NOTIMP;
  }
  if (query->flags & FLAGS_OF_ANSWERS) {
    err_set(err, EBADMSG, "the query has flags of an answer");
    return DNS_FORMERR;
  }
  if (counts[0] != 1 || counts[1] != 0 || counts[2] != 0 || counts[3] > 1) {
    err_set(err, EBADMSG, "a query holds one question and one EDNS record at most");
    return DNS_FORMERR;
  }
  if (take_question(&rest, err, &class, query) < 0)
    return DNS_FORMERR;
  if (counts[3] == 1 && take_opt(&rest, err, &version, query) < 0)
    return DNS_FORMERR;
  if (rest.len > 0) {
    err_set(err, EBADMSG, "bytes after the query");
    return DNS_FORMERR;
  }
  if (version != 0) {
    err_set(err, EBADMSG, "EDNS version %u", version);
    return DNS_BADVERS;
  }
  if (class != CLASS_IN) {
    err_set(err, EBADMSG, "class %u is not IN", class);
    return DNS_REFUSED;
  }
  return DNS_NOERROR;
}

int dns_parse_query(struct span message, struct err *err, struct dns_query *ret_query)
{
  struct dns_query query = { .udp_size = UDP_MIN_BYTES };
  struct span rest = message;
  unsigned id;
  unsigned flags;

  if (message.len < HEADER_BYTES || !bytes_take_u16(&rest, &id) || !bytes_take_u16(&rest, &flags))
    return err_set(err, EBADMSG, "a message of %zu bytes has no whole header", message.len);
  if (flags & FLAG_QR)
    return err_set(err, EBADMSG, "an answer where a query is wanted");
  query.id = (uint16_t)id;
  query.flags = (uint16_t)flags;
  query.rcode = parse_body(rest, err, &query);
  *ret_query = query;
  return 0;
}

/* Where an answer is written; what would not fit sets full and is left out. */
struct writer {
  char *out;
  size_t size;
  size_t len;
  bool full;
};

static void put(struct writer *writer, const void *bytes, size_t len)
{
  if (writer->full || writer->size - writer->len < len) {
    writer->full = true;
    return;
  }
  if (len > 0)
    memcpy(writer->out + writer->len, bytes, len);
  writer->len += len;
}

static void put_u16(struct writer *writer, unsigned value)
{
  unsigned char bytes[2] = { (unsigned char)(value >> 8), (unsigned char)value };

  put(writer, bytes, sizeof bytes);
}

static void put_u32(struct writer *writer, uint32_t value)
{
  put_u16(writer, value >> 16);
  put_u16(writer, value & 0xffff);
}

static void put_header(struct writer *writer, const struct dns_query *query, enum dns_rcode rcode, size_t answers,
                       bool truncated)
{
  put_u16(writer, query->id);
  put_u16(writer, FLAG_QR | FLAG_RA | (query->flags & (FLAG_OPCODE | FLAG_RD | FLAG_CD)) | (truncated ? FLAG_TC : 0u) |
                      ((unsigned)rcode & 0xf));
  put_u16(writer, query->question.len > 0);
  put_u16(writer, (unsigned)answers);
  put_u16(writer, 0);
  put_u16(writer, query->has_edns);
  put(writer, query->question.ptr, query->question.len);
}

static void put_opt(struct writer *writer, const struct dns_query *query, enum dns_rcode rcode)
{
  if (!query->has_edns)
    return;
  put(writer, "", 1); /* the root */
  put_u16(writer, TYPE_OPT);
  put_u16(writer, LIMITS_DNS_UDP_BYTES);
  put_u32(writer, (uint32_t)rcode >> 4 << 24);
  put_u16(writer, 0);
}

static void put_addrs(struct writer *writer, const struct dns_query *query, const struct dns_answer *answer)
{
  size_t len = query->type == DNS_TYPE_A ? 4 : 16;

  for (size_t i = 0; i < answer->count; i++) {
    put_u16(writer, 0xc000 | HEADER_BYTES); /* the question's name */
    put_u16(writer, query->type);
    put_u16(writer, CLASS_IN);
    put_u32(writer, answer->ttl);
    put_u16(writer, (unsigned)len);
    put(writer, answer->addrs[i].bytes, len);
  }
}

static bool is_answerable(const struct dns_query *query, const struct dns_answer *answer)
{
  enum addr_family family = query->type == DNS_TYPE_A ? ADDR_V4 : ADDR_V6;

  if (answer->count == 0)
    return true;
  /* The type is 0 where there is no question. */
  if ((query->type != DNS_TYPE_A && query->type != DNS_TYPE_AAAA) || answer->rcode != DNS_NOERROR ||
      answer->count > UINT16_MAX)
    return false;
  for (size_t i = 0; i < answer->count; i++)
    if (answer->addrs[i].family != family)
      return false;
  return true;
}

int dns_build_answer(const struct dns_query *query, const struct dns_answer *answer, char *out, size_t size)
{
  struct writer writer = { .out = out, .size = size < UINT16_MAX ? size : UINT16_MAX };

  if (!is_answerable(query, answer))
    return -EINVAL;
  put_header(&writer, query, answer->rcode, answer->count, false);
  put_addrs(&writer, query, answer);
  put_opt(&writer, query, answer->rcode);
  if (writer.full && answer->count > 0) {
    writer.len = 0;
    writer.full = false;
    put_header(&writer, query, answer->rcode, 0, true);
    put_opt(&writer, query, answer->rcode);
  }
  return writer.full ? -ENOSPC : (int)writer.len;
}

int dns_frame_scan(struct span bytes, struct err *err, struct span *ret_message, size_t *ret_len)
{
  struct span rest = bytes;
  struct span message;
  unsigned len;

  if (!bytes_take_u16(&rest, &len))
    return 0;
  if (len < HEADER_BYTES)
    return err_set(err, EBADMSG, "a message of %u bytes has no whole header", len);
  if (len > LIMITS_DNS_QUERY_BYTES)
    return err_set(err, E2BIG, "a query of %u bytes; at most %d are allowed", len, LIMITS_DNS_QUERY_BYTES);
  if (!bytes_take(&rest, len, &message))
    return 0;
  *ret_message = message;
  *ret_len = bytes.len - rest.len;
  return 1;
}

void dns_frame_encode(size_t len, char out[static 2])
{
  out[0] = (char)(len >> 8);
  out[1] = (char)len;
}
