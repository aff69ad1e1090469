/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * allow.c - which addresses may be called.
 * Owns:  the list of what the operator allows; the guard's decision; what is the name of a host.
 * Never: resolves a name; allows what it cannot read.
 */
#include "webhook/allow.h"

#include "base/error.h"
#include "base/text.h"

#include <assert.h>
#include <string.h>

#define LABEL_MAX   63
#define ENTRY_SHOWN 64 /* bytes of an entry that an error quotes */
#define ALLOWED     "a network (10.0.0.0/8, fd00::/8), an address, or the name of a host"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* What is wrong with a label; NULL: nothing. */
static const char *check_label(const char *label, size_t label_len)
{
    if (label_len == 0)
        return "has an empty label (two full stops, or one at its end)";
    if (label_len > LABEL_MAX)
        return "has a label of more than 63 bytes";
    if (label[0] == '-' || label[label_len - 1] == '-')
        return "has a label with a hyphen at its end";
    for (size_t i = 0; i < label_len; i++)
        if (!is_digit(label[i]) && !is_letter(label[i]) && label[i] != '-' && label[i] != '_')
            return "has a byte that is no letter, digit, hyphen, underscore or full stop";
    return NULL;
}

/* Numbers as inet_aton() takes them: some resolver would make an address of it. */
static bool is_number(const char *label, size_t label_len)
{
    bool is_hex = label_len >= 2 && label[0] == '0' && (label[1] == 'x' || label[1] == 'X');
    for (size_t i = is_hex ? 2 : 0; i < label_len; i++) {
        char c = (char)(label[i] | 0x20);
        if (!is_digit(label[i]) && !(is_hex && c >= 'a' && c <= 'f'))
            return false;
    }
    return true;
}

bool pawli_host_copy(const char *host, char to[PAWLI_HOST_SIZE], const char **ret_problem)
{
    assert(host != NULL && to != NULL && ret_problem != NULL);

    size_t len = pawli_text_length(host, PAWLI_HOST_NAME_MAX);
    *ret_problem = len == 0 ? "is empty" : len > PAWLI_HOST_NAME_MAX ? "is too long" : NULL;
    for (size_t begin = 0; *ret_problem == NULL && begin <= len;) {
        size_t label_len = strcspn(host + begin, ".");
        *ret_problem = check_label(host + begin, label_len);
        if (*ret_problem == NULL && begin + label_len == len && is_number(host + begin, label_len))
            *ret_problem = "ends in a number, and is no address";
        begin += label_len + 1;
    }
    if (*ret_problem != NULL)
        return false;
    for (size_t i = 0; i <= len; i++)
        to[i] = host[i] >= 'A' && host[i] <= 'Z' ? (char)(host[i] | 0x20) : host[i];
    return true;
}

/* Refuse an entry, quoted as far as it is short and printable. */
static pawl_code refuse(pawl_err *err, const char *text, const char *problem)
{
    char shown[ENTRY_SHOWN + 1];
    size_t len = 0;
    for (; len < ENTRY_SHOWN && text[len] != '\0'; len++)
        shown[len] = text[len] >= ' ' && text[len] <= '~' ? text[len] : '?';
    shown[len] = '\0';
    return pawli_fail(err, PAWL_INVALID, "allow \"%s%s\" %s; allowed: " ALLOWED, shown,
                      text[len] != '\0' ? "..." : "", problem);
}

/* What is wrong with the text behind the stroke; NULL, and the number. */
static const char *read_bits(const char *text, unsigned bits_max, unsigned *ret_bits)
{
    unsigned bits = 0;
    size_t len = strlen(text);
    for (size_t i = 0; i < len && i < 4; i++) {
        if (!is_digit(text[i]))
            return "has no number behind its stroke";
        bits = bits * 10 + (unsigned)(text[i] - '0');
    }
    if (len == 0 || (len > 1 && text[0] == '0'))
        return "has no number behind its stroke";
    if (len > 3 || bits > bits_max)
        return "has more bits behind its stroke than the address has";
    *ret_bits = bits;
    return NULL;
}

static bool has_bits_behind(const struct pawli_network *network)
{
    size_t size = network->address.is_v4 ? 4 : 16;
    for (size_t bit = network->bits; bit < 8 * size; bit++)
        if ((network->address.bytes[bit / 8] >> (7 - bit % 8) & 1) != 0)
            return true;
    return false;
}

/* The part before the stroke is an address. What is wrong; NULL: nothing. */
static const char *read_network(const char *address_text, const char *bits_text,
                                struct pawli_network *network)
{
    if (!pawli_address_parse(address_text, &network->address))
        return "has no address before its stroke";
    bool is_v4 = network->address.is_v4;
    bool is_mapped = is_v4 && strchr(address_text, ':') != NULL;
    network->bits = is_v4 ? 32 : 128;
    const char *problem = NULL;
    if (bits_text != NULL)
        problem = read_bits(bits_text, is_mapped ? 128 : network->bits, &network->bits);
    if (problem == NULL && is_mapped && bits_text != NULL) {
        if (network->bits < 96)
            return "is IPv4 and more; write both on their own";
        network->bits -= 96;
    }
    if (problem == NULL && has_bits_behind(network))
        return "has bits set behind its prefix";
    return problem;
}

static pawl_code add_network(struct pawli_allow *allow, const struct pawli_network *network,
                             pawl_err *err)
{
    if (allow->networks_count == PAWLI_ALLOW_MAX)
        return pawli_fail(err, PAWL_FULL, "allow: more networks than %d", PAWLI_ALLOW_MAX);
    allow->networks[allow->networks_count++] = *network;
    return PAWL_OK;
}

pawl_code pawli_allow_add(struct pawli_allow *allow, const char *text, pawl_err *err)
{
    assert(allow != NULL);

    if (text == NULL)
        return pawli_fail(err, PAWL_INVALID, "allow is missing (NULL); allowed: " ALLOWED);
    char entry[PAWLI_HOST_SIZE];
    if (!pawli_text_copy(entry, sizeof(entry), text))
        return refuse(err, text, "is too long");
    struct pawli_network network;
    char *stroke = strchr(entry, '/');
    if (stroke != NULL || pawli_address_parse(entry, &network.address)) {
        if (stroke != NULL)
            *stroke = '\0';
        const char *problem = read_network(entry, stroke != NULL ? stroke + 1 : NULL, &network);
        return problem != NULL ? refuse(err, text, problem) : add_network(allow, &network, err);
    }
    char host[PAWLI_HOST_SIZE] = "";
    const char *problem;
    if (!pawli_host_copy(entry, host, &problem))
        return refuse(err, text, problem);
    if (allow->hosts_count == PAWLI_ALLOW_MAX)
        return pawli_fail(err, PAWL_FULL, "allow: more hosts than %d", PAWLI_ALLOW_MAX);
    memcpy(allow->hosts[allow->hosts_count++], host, sizeof(host));
    return PAWL_OK;
}

bool pawli_allow_has_host(const struct pawli_allow *allow, const char *host)
{
    char small[PAWLI_HOST_SIZE];
    const char *problem;
    if (allow == NULL || host == NULL || !pawli_host_copy(host, small, &problem))
        return false;
    for (size_t i = 0; i < allow->hosts_count; i++)
        if (strcmp(allow->hosts[i], small) == 0)
            return true;
    return false;
}

static bool is_within(const struct pawli_address *address, const struct pawli_network *network)
{
    size_t whole = network->bits / 8;
    unsigned rest = network->bits % 8;
    const uint8_t *bytes = network->address.bytes;
    if (address->is_v4 != network->address.is_v4 || memcmp(address->bytes, bytes, whole) != 0)
        return false;
    return rest == 0 || (address->bytes[whole] ^ bytes[whole]) >> (8 - rest) == 0;
}

bool pawli_allow_address(const struct pawli_allow *allow, const char *host,
                         const struct pawli_address *address, enum pawli_address_kind *ret_kind)
{
    assert(address != NULL && ret_kind != NULL);

    *ret_kind = pawli_address_kind(address);
    if (*ret_kind == PAWLI_ADDRESS_PUBLIC || pawli_allow_has_host(allow, host))
        return true;
    for (size_t i = 0; allow != NULL && i < allow->networks_count; i++)
        if (is_within(address, &allow->networks[i]))
            return true;
    return false;
}
