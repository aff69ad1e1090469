/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * target_fuzz.c - what must hold for every URL that is checked. Run by libFuzzer, and by the unit
 * suite over a fixed corpus.
 * Owns:  the property: an accepted URL is https, its normal form is its own normal form, and where
 *        any resolver could take its host for an address, that address is public; a refused one
 *        leaves the result alone and gives its reason, without path or credentials.
 * Never: survives a violation: it aborts.
 */
#include "fuzz/target_fuzz.h"

#include "webhook/target.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

static void require(bool is_so)
{
    if (!is_so)
        abort();
}

static void check_accepted(const struct pawli_target *target)
{
    static const struct pawli_target_rules rules;
    static struct pawli_target again; /* large */
    require(target->is_https && strncmp(target->url, "https://", 8) == 0);
    require(target->port == 80 || target->port == 443);
    require(strpbrk(target->url, "#\\ ") == NULL);
    require(memchr(target->url + 8, '@', strcspn(target->url + 8, "/")) == NULL);
    require(strcspn(target->url + 8, "/") + 8 < strlen(target->url));
    require(pawli_target_check(target->url, &rules, &again, NULL) == PAWL_OK);
    require(strcmp(again.url, target->url) == 0 && strcmp(again.host, target->host) == 0);
    require(again.port == target->port && again.has_address == target->has_address);

    /* The most forgiving reader that there is: octal, hexadecimal, short forms. */
    struct in_addr in;
    if (inet_aton(target->host, &in) != 0) {
        struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr = in};
        struct pawli_address address;
        require(pawli_address_from((const struct sockaddr *)&from, sizeof(from), &address));
        require(pawli_address_kind(&address) == PAWLI_ADDRESS_PUBLIC);
        require(target->has_address);
    }
    if (target->has_address)
        require(pawli_address_kind(&target->address) == PAWLI_ADDRESS_PUBLIC);
    require(
        strstr(target->host, "localhost") == NULL ||
        strcmp(strstr(target->host, "localhost"), "localhost") != 0 ||
        (strcmp(target->host, "localhost") != 0 && strstr(target->host, "localhost")[-1] != '.'));
}

bool target_fuzz_one(const char *url)
{
    static const struct pawli_target_rules rules;
    static struct pawli_target target; /* large */
    pawl_err err = {.code = PAWL_OK, .text = ""};
    target.port = 4242;
    pawl_code rc = pawli_target_check(url, &rules, &target, &err);
    if (rc == PAWL_OK) {
        require(err.code == PAWL_OK);
        check_accepted(&target);
        return true;
    }
    require(rc == PAWL_INVALID && err.code == rc && target.port == 4242);
    require(strncmp(err.text, "url: ", 5) == 0);
    for (size_t i = 0; err.text[i] != '\0'; i++)
        require(err.text[i] >= ' ' && err.text[i] <= '~');
    return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    /* A block of exactly its size: a sanitizer sees any read behind the NUL. */
    char *url = malloc(size + 9);
    if (url == NULL)
        return 0;
    memcpy(url, "https://", 8);
    if (size > 0)
        memcpy(url + 8, data, size);
    url[size + 8] = '\0';
    (void)target_fuzz_one(url); /* both answers are right for some URL */
    (void)target_fuzz_one(url + 8);
    free(url);
    return 0;
}
