/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * webhook_target_test.c - proves webhook/target.c: whichever way a URL is spelled, what may not be
 * called is refused, and what may be called is written in one way.
 * Owns:  the table of spellings; the fixed corpus on which every compiler runs the fuzz target.
 * Never: resolves or calls anything.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/random.h"
#include "fuzz/target_fuzz.h"
#include "support/alloc_fail.h"
#include "webhook/target.h"

#include <curl/curl.h>

/* A URL, and its normal form, or what the error must say. */
static const struct spelling {
    const char *url;
    const char *normal;
    const char *named;
} spellings[] = {
    /* clang-format off */
    /* Good ones, and what is made of them. */
    {"https://example.com", "https://example.com/", NULL},
    {"https://example.com/", "https://example.com/", NULL},
    {"HTTPS://EXAMPLE.COM/Path?Query=A", "https://example.com/Path?Query=A", NULL},
    {"https://example.com:443/a", "https://example.com/a", NULL},
    {"https://example.com:80/a", "https://example.com:80/a", NULL},
    {"https://example.com:0443/", "https://example.com/", NULL},
    {"https://example.com?a=b", "https://example.com/?a=b", NULL},
    {"https://example.com/a/../b/./c", "https://example.com/b/c", NULL},
    {"https://example.com/a%20b?c=%23", "https://example.com/a%20b?c=%23", NULL},
    {"https://example.com/@user", "https://example.com/@user", NULL},
    {"https://example.com/?u=a@b", "https://example.com/?u=a@b", NULL},
    {"https://example.com/a:b", "https://example.com/a:b", NULL},
    {"https://xn--bcher-kva.example/", "https://xn--bcher-kva.example/", NULL},
    {"https://a_b.example.com/", "https://a_b.example.com/", NULL},
    {"https://1.example/", "https://1.example/", NULL},
    {"https://8.8.8.8/", "https://8.8.8.8/", NULL},
    {"https://134744072/", "https://8.8.8.8/", NULL},
    {"https://0x08080808/", "https://8.8.8.8/", NULL},
    {"https://010.8.8.8/", "https://8.8.8.8/", NULL},
    {"https://8.526344/", "https://8.8.8.8/", NULL},
    {"https://[2606:4700::1111]/", "https://[2606:4700::1111]/", NULL},
    {"https://[2606:4700:0:0:0:0:0:1111]:443/", "https://[2606:4700::1111]/", NULL},
    {"https://[2606:4700::1111]:80/", "https://[2606:4700::1111]:80/", NULL},
    {"https://[::ffff:8.8.8.8]/", "https://[::ffff:8.8.8.8]/", NULL},
    {"https://[64:ff9b::8.8.8.8]/", "https://[64:ff9b::8.8.8.8]/", NULL},
    {"https://127.0.0.1.example.com/", "https://127.0.0.1.example.com/", NULL},
    {"https://localhost.example.com/", "https://localhost.example.com/", NULL},
    {"https://notlocalhost/", "https://notlocalhost/", NULL},
    {"https://example/", "https://example/", NULL},
    {"https://example.com//double", "https://example.com//double", NULL},
    {"https://example.com/$&'()*+,;=:!~", "https://example.com/$&'()*+,;=:!~", NULL},
    /* Loopback, however it is spelled. */
    {"https://127.0.0.1/", NULL, "is loopback"},
    {"https://127.0.0.1:443/", NULL, "is loopback"},
    {"https://127.1/", NULL, "is loopback"},
    {"https://127.0.1/", NULL, "is loopback"},
    {"https://127.255.255.254/", NULL, "is loopback"},
    {"https://2130706433/", NULL, "is loopback"},
    {"https://0x7f000001/", NULL, "is loopback"},
    {"https://0X7F000001/", NULL, "is loopback"},
    {"https://0x7f.1/", NULL, "is loopback"},
    {"https://0x7f.0.0.1/", NULL, "is loopback"},
    {"https://0x7F.0x0.0x0.0x1/", NULL, "is loopback"},
    {"https://0177.0.0.1/", NULL, "is loopback"},
    {"https://0177.1/", NULL, "is loopback"},
    {"https://017700000001/", NULL, "is loopback"},
    {"https://00000177.0.0.1/", NULL, "is loopback"},
    {"https://0177.0x0.0.1/", NULL, "is loopback"},
    {"https://127.0x1/", NULL, "is loopback"},
    {"https://0x7f.0.1/", NULL, "is loopback"},
    {"https://127.000.000.001/", NULL, "is loopback"},
    {"https://127.0.0.01/", NULL, "is loopback"},
    {"https://0x0000007f.0.0.1/", NULL, "is loopback"},
    {"https://127.65535/", NULL, "is loopback"},
    {"https://127.16777215/", NULL, "is loopback"},
    {"https://localhost/", NULL, "is loopback"},
    {"https://LOCALHOST/", NULL, "is loopback"},
    {"https://LocalHost:443/", NULL, "is loopback"},
    {"https://a.localhost/", NULL, "is loopback"},
    {"https://a.b.LOCALHOST/", NULL, "is loopback"},
    {"https://[::1]/", NULL, "is loopback"},
    {"https://[0:0:0:0:0:0:0:1]/", NULL, "is loopback"},
    {"https://[0000:0000:0000:0000:0000:0000:0000:0001]/", NULL, "is loopback"},
    {"https://[::0001]/", NULL, "is loopback"},
    {"https://[0::1]/", NULL, "is loopback"},
    {"https://[::0:1]/", NULL, "is loopback"},
    {"https://[::1]:443/", NULL, "is loopback"},
    {"https://[::ffff:127.0.0.1]/", NULL, "is loopback"},
    {"https://[::FFFF:127.0.0.1]/", NULL, "is loopback"},
    {"https://[::ffff:7f00:1]/", NULL, "is loopback"},
    {"https://[0:0:0:0:0:ffff:7f00:0001]/", NULL, "is loopback"},
    {"https://[64:ff9b::127.0.0.1]/", NULL, "is loopback"},
    {"https://[64:ff9b::7f00:1]/", NULL, "is loopback"},
    {"https://[2002:7f00:1::]/", NULL, "is loopback"},
    {"https://[2002:7f00:0001::1]/", NULL, "is loopback"},
    {"https://[2001:0:808:808::80ff:fffe]/", NULL, "is loopback"},
    /* This machine under the name of none. */
    {"https://0.0.0.0/", NULL, "is unspecified"},
    {"https://0/", NULL, "is unspecified"},
    {"https://0x0/", NULL, "is unspecified"},
    {"https://00/", NULL, "is unspecified"},
    {"https://0.0/", NULL, "is unspecified"},
    {"https://0.0.0/", NULL, "is unspecified"},
    {"https://0x0.0x0.0x0.0x0/", NULL, "is unspecified"},
    {"https://000.000.000.000/", NULL, "is unspecified"},
    {"https://[::]/", NULL, "is unspecified"},
    {"https://[0:0:0:0:0:0:0:0]/", NULL, "is unspecified"},
    {"https://[::0]/", NULL, "is unspecified"},
    {"https://[::ffff:0.0.0.0]/", NULL, "is unspecified"},
    {"https://[64:ff9b::]/", NULL, "is unspecified"},
    {"https://0.0.0.1/", NULL, "is unspecified"},
    {"https://0.1.2.3/", NULL, "is unspecified"},
    /* Link-local: the metadata of clouds among them. */
    {"https://169.254.169.254/latest/meta-data/", NULL, "is link-local"},
    {"https://169.254.169.254:80/latest/meta-data/", NULL, "is link-local"},
    {"https://2852039166/latest/meta-data/", NULL, "is link-local"},
    {"https://0xa9fea9fe/latest/meta-data/", NULL, "is link-local"},
    {"https://0xA9.0xFE.0xA9.0xFE/latest/meta-data/", NULL, "is link-local"},
    {"https://0251.0376.0251.0376/latest/meta-data/", NULL, "is link-local"},
    {"https://025177524776/latest/meta-data/", NULL, "is link-local"},
    {"https://169.254.43518/latest/meta-data/", NULL, "is link-local"},
    {"https://169.16689662/latest/meta-data/", NULL, "is link-local"},
    {"https://0xa9.254.0251.254/latest/meta-data/", NULL, "is link-local"},
    {"https://0251.254.169.254/latest/meta-data/", NULL, "is link-local"},
    {"https://169.254.0xa9fe/latest/meta-data/", NULL, "is link-local"},
    {"https://[fe80::1]/latest/meta-data/", NULL, "is link-local"},
    {"https://[FE80::1]/latest/meta-data/", NULL, "is link-local"},
    {"https://[febf::1]/latest/meta-data/", NULL, "is link-local"},
    {"https://[::ffff:169.254.169.254]/latest/meta-data/", NULL, "is link-local"},
    {"https://[::ffff:a9fe:a9fe]/latest/meta-data/", NULL, "is link-local"},
    {"https://[64:ff9b::a9fe:a9fe]/latest/meta-data/", NULL, "is link-local"},
    {"https://[64:ff9b::169.254.169.254]/latest/meta-data/", NULL, "is link-local"},
    {"https://[2002:a9fe:a9fe::]/latest/meta-data/", NULL, "is link-local"},
    {"https://[2001:0:808:808::5601:5601]/latest/meta-data/", NULL, "is link-local"},
    {"https://169.254.170.2/latest/meta-data/", NULL, "is link-local"},
    /* Private networks. */
    {"https://10.0.0.1/", NULL, "is private"},
    {"https://10.1/", NULL, "is private"},
    {"https://167772161/", NULL, "is private"},
    {"https://0xa000001/", NULL, "is private"},
    {"https://012.0.0.1/", NULL, "is private"},
    {"https://0xa.0.0.1/", NULL, "is private"},
    {"https://10.255.255.255/", NULL, "is private"},
    {"https://172.16.0.1/", NULL, "is private"},
    {"https://172.31.255.255/", NULL, "is private"},
    {"https://0xac100001/", NULL, "is private"},
    {"https://2886729729/", NULL, "is private"},
    {"https://172.1048577/", NULL, "is private"},
    {"https://0254.020.0.1/", NULL, "is private"},
    {"https://192.168.0.1/", NULL, "is private"},
    {"https://192.168.1/", NULL, "is private"},
    {"https://3232235521/", NULL, "is private"},
    {"https://0xc0a80001/", NULL, "is private"},
    {"https://0300.0250.0.1/", NULL, "is private"},
    {"https://192.11010049/", NULL, "is private"},
    {"https://[fc00::1]/", NULL, "is private"},
    {"https://[fd00::1]/", NULL, "is private"},
    {"https://[fd00:ec2::254]/", NULL, "is private"},
    {"https://[fdff:ffff::1]/", NULL, "is private"},
    {"https://[fec0::1]/", NULL, "is private"},
    {"https://[::ffff:10.0.0.1]/", NULL, "is private"},
    {"https://[::ffff:192.168.0.1]/", NULL, "is private"},
    {"https://[::ffff:c0a8:1]/", NULL, "is private"},
    {"https://[64:ff9b::10.0.0.1]/", NULL, "is private"},
    {"https://[2002:a00:1::]/", NULL, "is private"},
    {"https://[2002:c0a8:1::1]/", NULL, "is private"},
    /* Other addresses that serve no webhooks. */
    {"https://100.64.0.1/", NULL, "is shared"},
    {"https://100.100.100.200/", NULL, "is shared"},
    {"https://0x64.0x64.0x64.0xc8/", NULL, "is shared"},
    {"https://[::ffff:100.64.0.1]/", NULL, "is shared"},
    {"https://[64:ff9b::100.64.0.1]/", NULL, "is shared"},
    {"https://[2002:6440:1::]/", NULL, "is shared"},
    {"https://224.0.0.1/", NULL, "is multicast"},
    {"https://239.255.255.250/", NULL, "is multicast"},
    {"https://0xe0000001/", NULL, "is multicast"},
    {"https://[ff02::1]/", NULL, "is multicast"},
    {"https://[ff0e::1]/", NULL, "is multicast"},
    {"https://[::ffff:224.0.0.1]/", NULL, "is multicast"},
    {"https://255.255.255.255/", NULL, "is broadcast"},
    {"https://4294967295/", NULL, "is broadcast"},
    {"https://0xffffffff/", NULL, "is broadcast"},
    {"https://037777777777/", NULL, "is broadcast"},
    {"https://[::ffff:255.255.255.255]/", NULL, "is broadcast"},
    {"https://192.0.2.1/", NULL, "is documentation"},
    {"https://198.51.100.1/", NULL, "is documentation"},
    {"https://203.0.113.1/", NULL, "is documentation"},
    {"https://[2001:db8::1]/", NULL, "is documentation"},
    {"https://[3fff::1]/", NULL, "is documentation"},
    {"https://198.18.0.1/", NULL, "is benchmarking"},
    {"https://198.19.255.255/", NULL, "is benchmarking"},
    {"https://[2001:2::1]/", NULL, "is benchmarking"},
    {"https://240.0.0.1/", NULL, "is reserved"},
    {"https://0xf0.1/", NULL, "is reserved"},
    {"https://192.0.0.192/", NULL, "is reserved"},
    {"https://192.88.99.1/", NULL, "is reserved"},
    {"https://168.63.129.16/", NULL, "is reserved"},
    {"https://0xa83f8110/", NULL, "is reserved"},
    {"https://[::127.0.0.1]/", NULL, "is reserved"},
    {"https://[::7f00:1]/", NULL, "is reserved"},
    {"https://[::8.8.8.8]/", NULL, "is reserved"},
    {"https://[::ffff:0:127.0.0.1]/", NULL, "is reserved"},
    {"https://[64:ff9b:1::1]/", NULL, "is reserved"},
    {"https://[64:ff9b:1::a9fe:a9fe]/", NULL, "is reserved"},
    {"https://[100::1]/", NULL, "is reserved"},
    {"https://[4000::1]/", NULL, "is reserved"},
    {"https://[2001:20::1]/", NULL, "is reserved"},
    {"https://[5f00::1]/", NULL, "is reserved"},
    /* Hosts that some reader takes for an address, or for another host. */
    {"https://127.0.0.1./", NULL, "at its end"},
    {"https://127.1./", NULL, "at its end"},
    {"https://localhost./", NULL, "at its end"},
    {"https://example.com./", NULL, "at its end"},
    {"https://example.com../", NULL, "empty label"},
    {"https://.example.com/", NULL, "empty label"},
    {"https://a..example.com/", NULL, "empty label"},
    {"https://1.2.3.4.5/", NULL, "ends in a number"},
    {"https://256.256.256.256/", NULL, "ends in a number"},
    {"https://127.0.0.256/", NULL, "ends in a number"},
    {"https://0x1ffffffff/", NULL, "ends in a number"},
    {"https://4294967296/", NULL, "ends in a number"},
    {"https://127.0.0.08/", NULL, "ends in a number"},
    {"https://08.8.8.8/", NULL, "ends in a number"},
    {"https://example.123/", NULL, "ends in a number"},
    {"https://example.0x7f/", NULL, "ends in a number"},
    {"https://99999999999999999999/", NULL, "ends in a number"},
    {"https://0x/", NULL, "ends in a number"},
    {"https://%31%32%37.0.0.1/", NULL, "with %"},
    {"https://127%2e0.0.1/", NULL, "with %"},
    {"https://127.0.0.1%00.example.com/", NULL, "with %"},
    {"https://example%2ecom/", NULL, "with %"},
    {"https://ex%61mple.com/", NULL, "with %"},
    {"https://%6cocalhost/", NULL, "with %"},
    {"https://[::1%25lo]/", NULL, "with %"},
    {"https://[fe80::1%25eth0]/", NULL, "with %"},
    {"https://[fe80::1%eth0]/", NULL, "with %"},
    {"https://example.com%2f@127.0.0.1/", NULL, "credentials"},
    {"https://-example.com/", NULL, "hyphen"},
    {"https://example-.com/", NULL, "hyphen"},
    {"https://exa+mple.com/", NULL, "url: "},
    {"https://exa*mple.com/", NULL, "url: "},
    {"https://exa!mple.com/", NULL, "url: "},
    {"https://(127.0.0.1)/", NULL, "url: "},
    {"https://127.0.0.1,example.com/", NULL, "url: "},
    {"https://aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa.com/",
     NULL, "63 bytes"},
    {"https://[127.0.0.1]/", NULL, "cannot be read"},
    {"https://[::1/", NULL, "cannot be read"},
    {"https://::1/", NULL, "url: "},
    {"https://[]/", NULL, "cannot be read"},
    {"https://[:]/", NULL, "cannot be read"},
    {"https://[::g]/", NULL, "cannot be read"},
    {"https://[1:2:3:4:5:6:7:8:9]/", NULL, "cannot be read"},
    {"https://[::1]a/", NULL, "cannot be read"},
    {"https://[::ffff:127.1]/", NULL, "cannot be read"},
    {"https://[v1.a]/", NULL, "cannot be read"},
    /* Other parts. */
    {"https://user@example.com/", NULL, "credentials"},
    {"https://user:secret@example.com/", NULL, "credentials"},
    {"https://:@example.com/", NULL, "url: "},
    {"https://@example.com/", NULL, "credentials"},
    {"https://example.com@127.0.0.1/", NULL, "credentials"},
    {"https://127.0.0.1@example.com/", NULL, "credentials"},
    {"https://example.com:443@127.0.0.1/", NULL, "credentials"},
    {"https://a@b@example.com/", NULL, "credentials"},
    {"https://example.com/#a", NULL, "fragment"},
    {"https://example.com#@127.0.0.1/", NULL, "fragment"},
    {"https://example.com#", NULL, "fragment"},
    {"https://127.0.0.1#.example.com/", NULL, "fragment"},
    {"http://example.com/", NULL, "scheme"},
    {"HTTP://example.com/", NULL, "scheme"},
    {"ftp://example.com/", NULL, "scheme"},
    {"file:///etc/passwd", NULL, "scheme"},
    {"gopher://example.com/", NULL, "scheme"},
    {"dict://example.com/", NULL, "scheme"},
    {"ldap://example.com/", NULL, "scheme"},
    {"smb://example.com/", NULL, "scheme"},
    {"javascript:alert(1)", NULL, "scheme"},
    {"data:text/plain,a", NULL, "scheme"},
    {"httpss://example.com/", NULL, "scheme"},
    {"https:example.com", NULL, "scheme"},
    {"https:/example.com", NULL, "scheme"},
    {"//example.com/", NULL, "scheme"},
    {"example.com", NULL, "scheme"},
    {"example.com:443", NULL, "scheme"},
    {"/path", NULL, "scheme"},
    {"unix:///run/docker.sock", NULL, "scheme"},
    {"https//example.com", NULL, "scheme"},
    {"ws://example.com/", NULL, "scheme"},
    {"https://", NULL, "no host"},
    {"https:///", NULL, "no host"},
    {"https:///example.com/", NULL, "no host"},
    {"https:////example.com/", NULL, "no host"},
    {"https://?a", NULL, "no host"},
    {"https://:443/", NULL, "no host"},
    {"https://example.com:/", NULL, "port is empty"},
    {"https://example.com:0/", NULL, "port"},
    {"https://example.com:22/", NULL, "port 22 is not allowed; allowed: 80, 443"},
    {"https://example.com:8080/", NULL, "port 8080 is not allowed"},
    {"https://example.com:65536/", NULL, "cannot be read"},
    {"https://example.com:-1/", NULL, "cannot be read"},
    {"https://example.com:+443/", NULL, "cannot be read"},
    {"https://example.com:443a/", NULL, "cannot be read"},
    {"https://example.com:0x1bb/", NULL, "cannot be read"},
    {"https://example.com:443:443/", NULL, "url: "},
    {"https://example.com:25/", NULL, "port 25"},
    {"https://example.com:6379/", NULL, "port 6379"},
    {"https://8.8.8.8:22/", NULL, "port 22"},
    {"", NULL, "empty"},
    {" https://example.com/", NULL, "byte 1"},
    {"https://example.com/ ", NULL, "byte 21"},
    {"https://exa mple.com/", NULL, "byte 12"},
    {"https://example.com/a b", NULL, "byte 22"},
    {"https://example.com\t/", NULL, "byte 20"},
    {"https://example.com\r\nHost: a/", NULL, "byte 20"},
    {"https://example.com/\x7f", NULL, "byte 21"},
    {"https://example.com\\@127.0.0.1/", NULL, "byte 20"},
    {"https:\\\\127.0.0.1/", NULL, "byte 7"},
    {"https://127.0.0.1\\.example.com/", NULL, "byte 18"},
    {"https://b\xc3\xbc" "cher.example/", NULL, "byte 10"},
    {"https://\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.0.0.1/", NULL, "byte 9"},
    {"https://127\xe3\x80\x82" "0\xe3\x80\x82" "0\xe3\x80\x82" "1/", NULL, "byte 12"},
    {"https://\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1/", NULL, "byte 9"},
    {"https://example\xc2\xad.com/", NULL, "byte 16"},
    {"https://example.com/\xff", NULL, "byte 21"},
    /* clang-format on */
};
#define SPELLINGS_COUNT (sizeof(spellings) / sizeof(spellings[0]))
_Static_assert(SPELLINGS_COUNT >= 200, "at least 200 spellings are tried");

static const struct pawli_target_rules strict;

/* What is wrong with what came of a spelling; NULL: nothing. */
static const char *judge(const struct spelling *row, pawl_code rc, const char *url,
                         const char *told)
{
    if (row->normal != NULL)
        return rc != PAWL_OK                   ? "must be accepted"
               : strcmp(url, row->normal) != 0 ? "has another normal form"
                                               : NULL;
    return rc != PAWL_INVALID                  ? "must be refused"
           : strstr(told, row->named) == NULL  ? "must be refused for another reason"
           : strstr(told, "allowed: ") == NULL ? "must be told what is allowed"
                                               : NULL;
}

static void every_spelling_is_seen_through(void **state)
{
    (void)state;
    size_t wrong = 0;
    for (size_t i = 0; i < SPELLINGS_COUNT; i++) {
        struct pawli_target target = {.url = ""};
        pawl_err err = {.text = ""};
        pawl_code rc = pawli_target_check(spellings[i].url, &strict, &target, &err);
        const char *problem = judge(&spellings[i], rc, target.url, err.text);
        if (problem != NULL)
            print_error("\"%s\" %s: %s%s\n", spellings[i].url, problem, target.url, err.text);
        wrong += problem != NULL;
        assert_int_equal(target_fuzz_one(spellings[i].url), rc == PAWL_OK);
    }
    assert_int_equal(wrong, 0);
}

static void parts_are_told(void **state)
{
    (void)state;
    struct pawli_target target;
    assert_int_equal(pawli_target_check("https://Example.COM:080/x", &strict, &target, NULL),
                     PAWL_OK);
    assert_string_equal(target.host, "example.com");
    assert_int_equal(target.port, 80);
    assert_true(target.is_https);
    assert_false(target.has_address);
    assert_int_equal(pawli_target_check("https://[2606:4700::1]/", &strict, &target, NULL),
                     PAWL_OK);
    assert_string_equal(target.host, "2606:4700::1");
    assert_int_equal(target.port, 443);
    assert_true(target.has_address);
    assert_false(target.address.is_v4);
    assert_int_equal(pawli_target_check("https://0x8080808/", &strict, &target, NULL), PAWL_OK);
    assert_string_equal(target.host, "8.8.8.8");
    assert_true(target.has_address && target.address.is_v4);
}

/* What the operator allows, and nothing beside it. */
static void the_rules_can_be_widened(void **state)
{
    (void)state;
    static struct pawli_allow allow;
    static const uint16_t ports[] = {8080, 9000};
    assert_int_equal(pawli_allow_add(&allow, "127.0.0.0/8", NULL), PAWL_OK);
    assert_int_equal(pawli_allow_add(&allow, "app.localhost", NULL), PAWL_OK);
    const struct pawli_target_rules wide = {
        .allow = &allow, .ports = ports, .ports_count = 2, .is_http_allowed = true};
    static const struct spelling rows[] = {
        {"http://127.1:8080/", "http://127.0.0.1:8080/", NULL},
        {"http://127.0.0.1:80/", "http://127.0.0.1/", NULL},
        {"http://[::ffff:127.0.0.1]:9000/", "http://[::ffff:127.0.0.1]:9000/", NULL},
        {"https://App.Localhost/", "https://app.localhost/", NULL},
        {"http://10.0.0.1/", NULL, "is private"},
        {"http://[::1]/", NULL, "is loopback"},
        {"http://localhost/", NULL, "is loopback"},
        {"http://127.0.0.1:8081/", NULL, "allowed: 80, 443, and those of the settings"},
        {"http://127.0.0.1:0/", NULL, "port"},
        {"ftp://127.0.0.1/", NULL, "allowed: https:// and http://"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct pawli_target target;
        pawl_err err = {.text = ""};
        pawl_code rc = pawli_target_check(rows[i].url, &wide, &target, &err);
        if (rc != (rows[i].normal != NULL ? PAWL_OK : PAWL_INVALID))
            fail_msg("%s: %s", rows[i].url, err.text);
        if (rows[i].normal != NULL)
            assert_string_equal(target.url, rows[i].normal);
        else if (strstr(err.text, rows[i].named) == NULL)
            fail_msg("\"%s\" must say \"%s\"", err.text, rows[i].named);
    }
}

static void urls_are_bounded(void **state)
{
    (void)state;
    char url[PAWLI_URL_MAX + 2];
    memset(url, 'a', sizeof(url));
    memcpy(url, "https://example.com/", 20);
    url[PAWLI_URL_MAX + 1] = '\0';
    assert_false(target_fuzz_one(url));
    url[PAWLI_URL_MAX] = '\0';
    assert_true(target_fuzz_one(url));
    /* Its normal form is longer by a stroke. */
    url[19] = '?';
    assert_false(target_fuzz_one(url));
    memset(url + 8, 'h', 300);
    assert_false(target_fuzz_one(url));
}

/* NFR-003: a path may hold a token, and so may credentials. */
static void errors_quote_host_and_port_only(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "https://user:canary@example.com/",
        "https://127.0.0.1/canary",
        "https://example.com:1/canary",
        "https://example.com/canary#canary",
        "http://example.com/canary",
        "https://a..b/canary",
        "https://[::1/canary",
        "https://example.com/?canary=\x01",
    };
    for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
        struct pawli_target target;
        pawl_err err;
        assert_int_equal(pawli_target_check(urls[i], &strict, &target, &err), PAWL_INVALID);
        if (strstr(err.text, "canary") != NULL)
            fail_msg("%s", err.text);
    }
    struct pawli_target target;
    pawl_err err;
    assert_int_equal(pawli_target_check(NULL, &strict, &target, &err), PAWL_INVALID);
    assert_string_equal(err.text, "url is missing (NULL)");
}

/* libcurl allocates through these: see main(). */
static void *curl_malloc(size_t size)
{
    return malloc(size);
}

static void *curl_calloc(size_t count, size_t size)
{
    return calloc(count, size);
}

static void *curl_realloc(void *block, size_t size)
{
    return realloc(block, size);
}

static char *curl_copy(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = malloc(size);
    return copy != NULL ? memcpy(copy, text, size) : NULL;
}

static void running_out_of_memory_is_told(void **state)
{
    (void)state;
    uint64_t nth = 1;
    uint64_t misread = 0;
    for (;; nth++) {
        struct pawli_target target = {.port = 4242};
        pawl_err err = {.code = PAWL_OK};
        alloc_fail_nth(nth);
        pawl_code rc = pawli_target_check("https://Example.com:443/a/../b?c", &strict, &target,
                                          &err);
        if (!alloc_fail_end()) {
            assert_int_equal(rc, PAWL_OK);
            break;
        }
        /* libcurl takes some failures for a bad URL; they are few. */
        assert_true(rc == PAWL_NO_MEMORY || rc == PAWL_INVALID);
        misread += rc == PAWL_INVALID;
        assert_int_equal(err.code, rc);
        assert_int_equal(target.port, 4242);
    }
    assert_true(nth > 5 && misread < nth / 2);
}

static void the_property_holds_on_the_corpus(void **state)
{
    (void)state;
    struct pawli_seeded seeded = {20260305};
    pawl_random random = pawli_seeded_as_random(&seeded);
    size_t good = 0;
    for (int i = 0; i < 30000; i++) {
        char url[300] = {0};
        (void)snprintf(url, sizeof(url) - 1, "%s",
                       spellings[pawli_random_below(&random, SPELLINGS_COUNT)].url);
        static const char likely[] = "0123456789abcdefx.:/-_[]%@?#\\";
        for (uint64_t changes = pawli_random_below(&random, 4); changes > 0; changes--)
            url[pawli_random_below(&random, strlen(url) + 1)] =
                likely[pawli_random_below(&random, sizeof(likely))];
        good += target_fuzz_one(url);
        assert_int_equal(LLVMFuzzerTestOneInput((const uint8_t *)url, strlen(url)), 0);
    }
    assert_in_range(good, 1000, 29000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_spelling_is_seen_through),
        cmocka_unit_test(parts_are_told),
        cmocka_unit_test(the_rules_can_be_widened),
        cmocka_unit_test(urls_are_bounded),
        cmocka_unit_test(errors_quote_host_and_port_only),
        cmocka_unit_test(running_out_of_memory_is_told),
        cmocka_unit_test(the_property_holds_on_the_corpus),
    };
    if (curl_global_init_mem(CURL_GLOBAL_NOTHING, curl_malloc, free, curl_realloc, curl_copy,
                             curl_calloc) != CURLE_OK)
        return 1;
    int failed = cmocka_run_group_tests_name("webhook_target", tests, NULL, NULL);
    curl_global_cleanup();
    return failed;
}
