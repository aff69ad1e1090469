/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * allow_fuzz.c - what must hold for every text that is read as an entry of an allow-list. Run by
 * libFuzzer, and by the unit suite over a fixed corpus.
 * Owns:  the property: an accepted entry is one network, which has its own first address, or one
 *        host, which is found in whatever case of letters; a refused one leaves the list alone and
 *        gives its reason.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/allow_fuzz.h"

#include "webhook/allow.h"

#include <stdlib.h>
#include <string.h>

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

static void check_network(const struct pawli_allow *allow)
{
    const struct pawli_network *network = &allow->networks[0];
    enum pawli_address_kind kind;
    require(network->bits <= (network->address.is_v4 ? 32u : 128u));
    require(pawli_allow_address(allow, NULL, &network->address, &kind));
    require(kind == pawli_address_kind(&network->address));
    if (network->bits == 0)
        return;
    /* The last bit of the prefix turned: a neighbour, which is not in it. */
    struct pawli_address other = network->address;
    unsigned bit = network->bits - 1;
    other.bytes[bit / 8] ^= (uint8_t)(0x80 >> bit % 8);
    require(pawli_allow_address(allow, NULL, &other, &kind) == (kind == PAWLI_ADDRESS_PUBLIC));
}

static void check_host(const struct pawli_allow *allow, const char *text)
{
    char host[PAWLI_HOST_SIZE];
    const char *problem;
    struct pawli_address address = {.is_v4 = true, .bytes = {127, 0, 0, 1}};
    enum pawli_address_kind kind;
    require(pawli_host_copy(text, host, &problem));
    require(strcmp(host, allow->hosts[0]) == 0);
    require(pawli_host_copy(host, host, &problem)); /* what it makes, it takes */
    require(pawli_allow_has_host(allow, text) && pawli_allow_has_host(allow, host));
    require(pawli_allow_address(allow, text, &address, &kind));
    require(!pawli_allow_address(allow, NULL, &address, &kind));
    require(!pawli_address_parse(host, &address));
}

bool allow_fuzz_one(const char *text)
{
    struct pawli_allow *allow = calloc(1, sizeof(*allow));
    pawl_err err = {.code = PAWL_OK, .text = ""};
    require(allow != NULL);
    pawl_code rc = pawli_allow_add(allow, text, &err);
    if (rc == PAWL_OK) {
        require(allow->networks_count + allow->hosts_count == 1);
        if (allow->networks_count == 1)
            check_network(allow);
        else
            check_host(allow, text);
    } else {
        require(rc == PAWL_INVALID && err.code == rc);
        require(allow->networks_count + allow->hosts_count == 0);
        for (size_t i = 0; err.text[i] != '\0'; i++)
            require(err.text[i] >= ' ' && err.text[i] <= '~');
        require(strncmp(err.text, "allow ", 6) == 0);
    }
    free(allow);
    return rc == PAWL_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A block of exactly its size: a sanitizer sees any read behind the NUL. */
    char *text = malloc(size + 1);
    if (text == NULL)
        return 0;
    if (size > 0)
        memcpy(text, data, size);
    text[size] = '\0';
    (void)allow_fuzz_one(text); /* both answers are right for some text */
    free(text);
    return 0;
}
