/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * policy.c - the settings: their defaults, their bounds, and what they come to.
 * Owns:  every default and every bound of a setting; the texts of the refusals.
 * Never: applies a setting (stores, keepers and reapers do); changes what it checks.
 */
#include "core/policy.h"

#include "base/error.h"
#include "base/text.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

#define SECOND_MS INT64_C(1000)
#define DAY_MS    (24 * 3600 * SECOND_MS)

#define REAPER_INTERVAL_MS (10 * SECOND_MS) /* unless half the lease is smaller: RULE-020-022 */

/* ---- single values */

#define SHOWN_MAX 40 /* bytes of a bad name that an error quotes */

pawl_code pawli_check_name(const char *field, const char *value, pawl_err *err)
{
    assert(field != NULL);

    if (value == NULL)
        return pawli_fail(err, PAWL_INVALID, "%s is missing (NULL); it must have 1 to %d bytes",
                          field, PAWL_NAME_MAX);
    size_t length = pawli_text_length(value, PAWL_NAME_MAX);
    if (length == 0)
        return pawli_fail(err, PAWL_INVALID, "%s is empty; it must have 1 to %d bytes", field,
                          PAWL_NAME_MAX);
    /* What is quoted was looked at first: an error goes to logs and terminals. */
    for (size_t i = 0; i < length; i++)
        if (value[i] < '!' || value[i] > '~')
            return pawli_fail(
                err, PAWL_INVALID,
                "%s \"%.*s\" goes on with byte 0x%02x at %zu; printable ASCII without "
                "blanks is allowed",
                field, (int)(i < SHOWN_MAX ? i : SHOWN_MAX), value,
                (unsigned)(unsigned char)value[i], i);
    if (length > PAWL_NAME_MAX)
        return pawli_fail(err, PAWL_INVALID, "%s \"%.*s...\" is longer than %d bytes", field,
                          SHOWN_MAX, value, PAWL_NAME_MAX);
    return PAWL_OK;
}

pawl_code pawli_check_duration(const char *field, int64_t ms, int64_t min_ms, pawl_err *err)
{
    assert(field != NULL);
    if (ms >= min_ms && ms <= PAWL_DURATION_MAX_MS)
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID, "%s is %lld ms; it must be from %lld to %lld ms", field,
                      (long long)ms, (long long)min_ms, (long long)PAWL_DURATION_MAX_MS);
}

pawl_code pawli_check_range(const char *field, int64_t value, struct pawli_range range,
                            pawl_err *err)
{
    assert(field != NULL);
    assert(range.min <= range.max);
    if (value >= range.min && value <= range.max)
        return PAWL_OK;
    return pawli_fail(err, PAWL_INVALID, "%s is %lld; it must be from %lld to %lld", field,
                      (long long)value, (long long)range.min, (long long)range.max);
}

/* ---- the settings, field by field */

/* One field of a settings structure: all of them are int64_t but is_paused. */
struct field {
    const char *name;
    size_t offset;
    int64_t initial;
    struct pawli_range range;
    int64_t also; /* one more value that is allowed; where there is none, `initial` again */
};

#define SETTINGS_FIELD(type, field) #field, offsetof(type, field)

/* clang-format off */
#define FIELD(field) SETTINGS_FIELD(pawl_queue_settings, field)
static const struct field queue_fields[] = {
    {FIELD(lease_ms), 30 * SECOND_MS, {PAWL_LEASE_MIN_MS, PAWL_DURATION_MAX_MS}, 30 * SECOND_MS},
    {FIELD(execution_timeout_ms), PAWL_DEFAULT, {1, PAWL_DURATION_MAX_MS}, PAWL_DEFAULT},
    {FIELD(max_retries), 3, {0, PAWL_RETRIES_MAX}, 3},
    {FIELD(max_lost_leases), 10, {1, PAWL_RETRIES_MAX}, 10},
    {FIELD(backoff_base_ms), 500, {1, PAWL_DURATION_MAX_MS}, 500},
    {FIELD(backoff_max_ms), 30 * SECOND_MS, {1, PAWL_DURATION_MAX_MS}, 30 * SECOND_MS},
    {FIELD(keep_succeeded_ms), 7 * DAY_MS, {1, PAWL_DURATION_MAX_MS}, PAWL_FOREVER},
    {FIELD(keep_failed_ms), 30 * DAY_MS, {1, PAWL_DURATION_MAX_MS}, PAWL_FOREVER},
    {FIELD(max_in_flight), 0, {0, PAWL_IN_FLIGHT_MAX}, 0},
};
#undef FIELD

#define FIELD(field) SETTINGS_FIELD(pawl_worker_settings, field)
static const struct field worker_fields[] = {
    {FIELD(parallel_max), 10, {1, PAWL_BATCH_MAX}, 10},
    {FIELD(buffer_max), 10, {0, PAWL_BATCH_MAX}, 10},
    {FIELD(heartbeat_ms), PAWL_DEFAULT, {1, PAWL_DURATION_MAX_MS}, PAWL_DEFAULT},
    {FIELD(poll_ms), SECOND_MS, {1, PAWL_DURATION_MAX_MS}, SECOND_MS},
    {FIELD(shutdown_timeout_ms), PAWL_DEFAULT, {1, PAWL_DURATION_MAX_MS}, PAWL_DEFAULT},
    {FIELD(grace_ms), 5 * SECOND_MS, {1, PAWL_DURATION_MAX_MS}, 5 * SECOND_MS},
    {FIELD(claim_batch_max), 1000, {1, PAWL_BATCH_MAX}, 1000},
    {FIELD(renew_batch_max), 1000, {1, PAWL_BATCH_MAX}, 1000},
    {FIELD(settle_batch_max), 1000, {1, PAWL_BATCH_MAX}, 1000},
    {FIELD(settle_linger_ms), 0, {0, SECOND_MS}, 0},
    {FIELD(call_timeout_ms), 5 * SECOND_MS, {1, PAWL_DURATION_MAX_MS}, 5 * SECOND_MS},
    {FIELD(retry_base_ms), 100, {1, PAWL_DURATION_MAX_MS}, 100},
    {FIELD(retry_max_ms), 5 * SECOND_MS, {1, PAWL_DURATION_MAX_MS}, 5 * SECOND_MS},
};
#undef FIELD

#define FIELD(field) SETTINGS_FIELD(pawl_reaper_settings, field)
static const struct field reaper_fields[] = {
    {FIELD(interval_ms), PAWL_DEFAULT, {1, PAWL_DURATION_MAX_MS}, PAWL_DEFAULT},
    {FIELD(batch_max), 1000, {1, PAWL_BATCH_MAX}, 1000},
};
#undef FIELD
/* clang-format on */

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static void init_fields(void *settings, const struct field *fields, size_t fields_count)
{
    for (size_t i = 0; i < fields_count; i++)
        memcpy((char *)settings + fields[i].offset, &fields[i].initial, sizeof(int64_t));
}

static pawl_code check_fields(const void *settings, const struct field *fields, size_t fields_count,
                              pawl_err *err)
{
    if (settings == NULL)
        return pawli_fail(err, PAWL_INVALID, "settings are missing (NULL)");
    for (size_t i = 0; i < fields_count; i++) {
        int64_t value;
        memcpy(&value, (const char *)settings + fields[i].offset, sizeof(value));
        if (value == fields[i].also)
            continue;
        pawl_code rc = pawli_check_range(fields[i].name, value, fields[i].range, err);
        if (rc != PAWL_OK)
            return rc;
    }
    return PAWL_OK;
}

void pawl_queue_settings_init(pawl_queue_settings *settings)
{
    if (settings == NULL)
        return;
    memset(settings, 0, sizeof(*settings));
    init_fields(settings, queue_fields, COUNT_OF(queue_fields));
}

void pawl_worker_settings_init(pawl_worker_settings *settings)
{
    if (settings != NULL)
        init_fields(settings, worker_fields, COUNT_OF(worker_fields));
}

void pawl_reaper_settings_init(pawl_reaper_settings *settings)
{
    if (settings != NULL)
        init_fields(settings, reaper_fields, COUNT_OF(reaper_fields));
}

/* A field that is missing from its table would never be set or checked. */
_Static_assert(sizeof(pawl_queue_settings) == (COUNT_OF(queue_fields) + 1) * sizeof(int64_t),
               "queue_fields names every field but is_paused");
_Static_assert(sizeof(pawl_worker_settings) == COUNT_OF(worker_fields) * sizeof(int64_t),
               "worker_fields names every field");
_Static_assert(sizeof(pawl_reaper_settings) == COUNT_OF(reaper_fields) * sizeof(int64_t),
               "reaper_fields names every field");

/* ---- profiles */

pawl_code pawl_lease_profile_ms(pawl_lease_profile profile, int64_t *ret_ms, pawl_err *err)
{
    int64_t ms = 0;
    if (ret_ms == NULL)
        return pawli_fail(err, PAWL_INVALID, "ret_ms is missing (NULL)");
    switch (profile) {
    case PAWL_LEASE_SHORT:
        ms = 5 * SECOND_MS;
        break;
    case PAWL_LEASE_STANDARD:
        ms = 30 * SECOND_MS;
        break;
    case PAWL_LEASE_HEAVY:
        ms = 60 * SECOND_MS;
        break;
    case PAWL_LEASE_EXTERNAL:
        ms = 120 * SECOND_MS;
        break;
    }
    if (ms == 0)
        return pawli_fail(err, PAWL_INVALID, "lease profile is %d; it must be from %d to %d",
                          (int)profile, (int)PAWL_LEASE_SHORT, (int)PAWL_LEASE_EXTERNAL);
    *ret_ms = ms;
    return PAWL_OK;
}

pawl_code pawl_reaper_profile_ms(pawl_reaper_profile profile, int64_t *ret_ms, pawl_err *err)
{
    int64_t ms = 0;
    if (ret_ms == NULL)
        return pawli_fail(err, PAWL_INVALID, "ret_ms is missing (NULL)");
    switch (profile) {
    case PAWL_REAPER_STANDARD:
        ms = 10 * SECOND_MS;
        break;
    case PAWL_REAPER_HIGH_VOLUME:
        ms = 5 * SECOND_MS;
        break;
    case PAWL_REAPER_LOW_VOLUME:
        ms = 30 * SECOND_MS;
        break;
    }
    if (ms == 0)
        return pawli_fail(err, PAWL_INVALID, "reaper profile is %d; it must be from %d to %d",
                          (int)profile, (int)PAWL_REAPER_STANDARD, (int)PAWL_REAPER_LOW_VOLUME);
    *ret_ms = ms;
    return PAWL_OK;
}

/* ---- checks of a whole */

/* The largest heartbeat interval of which three fit strictly into the lease: RES-2. */
static int64_t heartbeat_max_ms(int64_t lease_ms)
{
    return (lease_ms - 1) / 3;
}

pawl_code pawl_queue_settings_check(const pawl_queue_settings *settings, pawl_err *err)
{
    return check_fields(settings, queue_fields, COUNT_OF(queue_fields), err);
}

pawl_code pawl_worker_settings_check(const pawl_worker_settings *settings,
                                     int64_t smallest_lease_ms, pawl_err *err)
{
    pawl_code rc = check_fields(settings, worker_fields, COUNT_OF(worker_fields), err);
    if (rc != PAWL_OK)
        return rc;
    rc = pawli_check_duration("smallest_lease_ms", smallest_lease_ms, PAWL_LEASE_MIN_MS, err);
    if (rc != PAWL_OK)
        return rc;
    if (settings->heartbeat_ms != PAWL_DEFAULT &&
        settings->heartbeat_ms > heartbeat_max_ms(smallest_lease_ms))
        return pawli_fail(err, PAWL_INVALID,
                          "heartbeat_ms is %lld, and three of it must be less than the lease of "
                          "%lld ms; the largest allowed is %lld",
                          (long long)settings->heartbeat_ms, (long long)smallest_lease_ms,
                          (long long)heartbeat_max_ms(smallest_lease_ms));
    if (settings->shutdown_timeout_ms != PAWL_DEFAULT &&
        settings->shutdown_timeout_ms > smallest_lease_ms)
        return pawli_fail(err, PAWL_INVALID,
                          "shutdown_timeout_ms is %lld, and must not exceed the smallest lease of "
                          "%lld ms; the largest allowed is %lld",
                          (long long)settings->shutdown_timeout_ms, (long long)smallest_lease_ms,
                          (long long)smallest_lease_ms);
    return PAWL_OK;
}

pawl_code pawl_reaper_settings_check(const pawl_reaper_settings *settings,
                                     int64_t smallest_lease_ms, pawl_err *err)
{
    pawl_code rc = check_fields(settings, reaper_fields, COUNT_OF(reaper_fields), err);
    if (rc != PAWL_OK)
        return rc;
    rc = pawli_check_duration("smallest_lease_ms", smallest_lease_ms, PAWL_LEASE_MIN_MS, err);
    if (rc != PAWL_OK)
        return rc;
    if (settings->interval_ms != PAWL_DEFAULT && settings->interval_ms >= smallest_lease_ms)
        return pawli_fail(err, PAWL_INVALID,
                          "interval_ms is %lld, and must be below the smallest lease of %lld ms; "
                          "the largest allowed is %lld",
                          (long long)settings->interval_ms, (long long)smallest_lease_ms,
                          (long long)smallest_lease_ms - 1);
    return PAWL_OK;
}

/* ---- what they come to */

int64_t pawli_in_flight_share(int64_t max_in_flight, int64_t shard, int64_t shards)
{
    assert(max_in_flight >= 0);
    assert(shard >= 0 && shard < shards);
    if (max_in_flight == 0)
        return INT64_MAX;
    return max_in_flight / shards + (shard < max_in_flight % shards ? 1 : 0);
}

int64_t pawli_execution_timeout_ms(const pawl_queue_settings *settings, int64_t lease_ms)
{
    assert(settings != NULL);
    assert(lease_ms > 0);
    if (settings->execution_timeout_ms != PAWL_DEFAULT)
        return settings->execution_timeout_ms;
    return 3 * lease_ms;
}

int64_t pawli_heartbeat_ms(const pawl_worker_settings *settings, int64_t lease_ms)
{
    assert(settings != NULL);
    assert(lease_ms > 0);
    if (settings->heartbeat_ms != PAWL_DEFAULT &&
        settings->heartbeat_ms <= heartbeat_max_ms(lease_ms))
        return settings->heartbeat_ms;
    return lease_ms >= 4 ? lease_ms / 4 : 1;
}

int64_t pawli_shutdown_timeout_ms(const pawl_worker_settings *settings, int64_t smallest_lease_ms)
{
    assert(settings != NULL);
    assert(smallest_lease_ms > 0);
    if (settings->shutdown_timeout_ms != PAWL_DEFAULT)
        return settings->shutdown_timeout_ms;
    return smallest_lease_ms;
}

int64_t pawli_reaper_interval_ms(const pawl_reaper_settings *settings, int64_t smallest_lease_ms)
{
    assert(settings != NULL);
    assert(smallest_lease_ms >= PAWL_LEASE_MIN_MS);
    if (settings->interval_ms != PAWL_DEFAULT)
        return settings->interval_ms;
    int64_t half_ms = smallest_lease_ms / 2;
    return half_ms < REAPER_INTERVAL_MS ? half_ms : REAPER_INTERVAL_MS;
}
