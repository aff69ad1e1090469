/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * retry_after.c - the header Retry-After.
 * Owns:  the one reader of it, and of HTTP's dates.
 * Never: reads a clock; depends on the locale or a time zone; gives more than it was told to.
 */
#include "webhook/retry_after.h"

#include "base/text.h"

#include <assert.h>
#include <string.h>

#define VALUE_MAX 64 /* bytes: no date is longer */

#define SECOND_US INT64_C(1000000)
#define DAY_S     INT64_C(86400)

struct date {
    int year;
    int month; /* from 1 */
    int day;   /* from 1 */
    int hour;
    int minute;
    int second; /* to 60: a leap second */
};

static const char *const short_days[] = {"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun", NULL};
static const char *const long_days[] = {"Monday", "Tuesday",  "Wednesday", "Thursday",
                                        "Friday", "Saturday", "Sunday",    NULL};
static const char *const months[] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul",
                                     "Aug", "Sep", "Oct", "Nov", "Dec", NULL};

/* ---- taking a value apart, from its beginning; false: it does not go on like this */

static bool take(const char **at, const char *literal)
{
    size_t len = strlen(literal);
    if (strncmp(*at, literal, len) != 0)
        return false;
    *at += len;
    return true;
}

/* One of the names; its number counts from 1. */
static bool take_name(const char **at, const char *const *names, int *ret_number)
{
    for (int i = 0; names[i] != NULL; i++) {
        if (take(at, names[i])) {
            *ret_number = i + 1;
            return true;
        }
    }
    return false;
}

/* Exactly so many digits. */
static bool take_digits(const char **at, int digits, int *ret_number)
{
    int number = 0;
    for (int i = 0; i < digits; i++) {
        char c = (*at)[i];
        if (c < '0' || c > '9')
            return false;
        number = number * 10 + (c - '0');
    }
    *at += digits;
    *ret_number = number;
    return true;
}

static bool take_time(const char **at, struct date *date)
{
    return take_digits(at, 2, &date->hour) && take(at, ":") && take_digits(at, 2, &date->minute) &&
           take(at, ":") && take_digits(at, 2, &date->second);
}

/* Sun, 06 Nov 1994 08:49:37 GMT */
static bool read_usual(const char *at, struct date *date)
{
    int weekday;
    return take_name(&at, short_days, &weekday) && take(&at, ", ") &&
           take_digits(&at, 2, &date->day) && take(&at, " ") &&
           take_name(&at, months, &date->month) && take(&at, " ") &&
           take_digits(&at, 4, &date->year) && take(&at, " ") && take_time(&at, date) &&
           take(&at, " GMT") && *at == '\0';
}

/* Sunday, 06-Nov-94 08:49:37 GMT; the year is the one nearest to now that ends so. */
static bool read_old(const char *at, int year_now, struct date *date)
{
    int weekday;
    bool is_read = take_name(&at, long_days, &weekday) && take(&at, ", ") &&
                   take_digits(&at, 2, &date->day) && take(&at, "-") &&
                   take_name(&at, months, &date->month) && take(&at, "-") &&
                   take_digits(&at, 2, &date->year) && take(&at, " ") && take_time(&at, date) &&
                   take(&at, " GMT") && *at == '\0';
    if (!is_read)
        return false;
    date->year += year_now / 100 * 100;
    if (date->year > year_now + 50)
        date->year -= 100;
    else if (date->year <= year_now - 50)
        date->year += 100;
    return true;
}

/* Sun Nov  6 08:49:37 1994 */
static bool read_c(const char *at, struct date *date)
{
    int weekday;
    return take_name(&at, short_days, &weekday) && take(&at, " ") &&
           take_name(&at, months, &date->month) && take(&at, " ") &&
           (take(&at, " ") ? take_digits(&at, 1, &date->day) : take_digits(&at, 2, &date->day)) &&
           take(&at, " ") && take_time(&at, date) && take(&at, " ") &&
           take_digits(&at, 4, &date->year) && *at == '\0';
}

/* ---- counting */

static bool is_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && is_leap(year));
}

/* Days from the year 0 to the first of this one. */
static int64_t days_before(int year)
{
    int64_t last = year - 1;
    return year == 0 ? 0 : 366 + last * 365 + last / 4 - last / 100 + last / 400;
}

static bool is_good(const struct date *date)
{
    return date->day >= 1 && date->day <= days_in(date->year, date->month) && date->hour <= 23 &&
           date->minute <= 59 && date->second <= 60;
}

/* Seconds since 1970. */
static int64_t seconds_of(const struct date *date)
{
    int64_t days = days_before(date->year) - days_before(1970) + date->day - 1;
    for (int month = 1; month < date->month; month++)
        days += days_in(date->year, month);
    return days * DAY_S + date->hour * 3600 + date->minute * 60 + date->second;
}

static int year_of(pawl_wall at)
{
    int64_t days = at.us / SECOND_US / DAY_S;
    if (days < 0 || days > days_before(9999) - days_before(1970))
        return 1970; /* no clock says so; a year of two digits means nothing then */
    int year = 1970 + (int)(days / 366);
    while (days_before(year + 1) - days_before(1970) <= days)
        year++;
    return year;
}

/* ---- the header */

static bool read_seconds(const char *text, int64_t max_ms, int64_t *ret_ms)
{
    if (text[0] == '\0')
        return false;
    int64_t ms = 0;
    for (const char *at = text; *at != '\0'; at++) {
        if (*at < '0' || *at > '9')
            return false;
        /* Once above the bound it stays there, however many digits follow. */
        ms = ms > max_ms / 10 ? max_ms : ms * 10 + (*at - '0') * INT64_C(1000);
    }
    *ret_ms = ms < max_ms ? ms : max_ms;
    return true;
}

static bool read_date(const char *text, pawl_wall now, int64_t max_ms, int64_t *ret_ms)
{
    struct date date = {.month = 1};
    bool is_read = read_usual(text, &date) || read_old(text, year_of(now), &date) ||
                   read_c(text, &date);
    if (!is_read || !is_good(&date))
        return false;
    int64_t at_us = seconds_of(&date) * SECOND_US;
    if (at_us <= now.us)
        *ret_ms = 0;
    else if (now.us < 0 || (at_us - now.us) / 1000 >= max_ms)
        *ret_ms = max_ms;
    else
        *ret_ms = (at_us - now.us + 999) / 1000; /* not before that instant */
    return true;
}

bool pawli_retry_after_read(const char *value, pawl_wall now, int64_t max_ms, int64_t *ret_ms)
{
    assert(max_ms >= 0 && max_ms <= PAWL_DURATION_MAX_MS);
    assert(ret_ms != NULL);

    if (value == NULL)
        return false;
    value += strspn(value, " \t");
    char text[VALUE_MAX + 1];
    if (!pawli_text_copy(text, sizeof(text), value))
        return false;
    size_t len = strlen(text);
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        text[--len] = '\0';
    return read_seconds(text, max_ms, ret_ms) || read_date(text, now, max_ms, ret_ms);
}
