/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * check_pauses.c - what a worker does first after it has stood still.
 * Owns:  C12.
 * Never: demands an abort where a renewal may have come in time.
 */
#include "sim/check_book.h"

#include <inttypes.h>

/* What a worker runs, as far as its notes have been read. */
struct desk {
    struct check_lease **running;
    size_t count;
    size_t size;
    size_t owed; /* aborts that must come before anything else */
    int64_t step_us;
};

static bool put(struct check_book *book, struct desk *desk, struct check_lease *lease)
{
    if (desk->count == desk->size) {
        size_t size = desk->size == 0 ? 16 : 2 * desk->size;
        struct check_lease **running = check_alloc(book, size * sizeof(struct check_lease *));
        if (running == NULL)
            return false;
        if (desk->count > 0)
            memcpy(running, desk->running, desk->count * sizeof(struct check_lease *));
        desk->running = running;
        desk->size = size;
    }
    desk->running[desk->count++] = lease;
    return true;
}

static void settle_debt(struct desk *desk, struct check_lease *lease)
{
    if (lease->step.is_owed)
        desk->owed--;
    lease->step.is_owed = false;
}

static void clear_debts(struct desk *desk)
{
    for (size_t i = 0; i < desk->count; i++)
        desk->running[i]->step.is_owed = false;
    desk->owed = 0;
}

static void take(struct desk *desk, struct check_lease *lease)
{
    settle_debt(desk, lease);
    for (size_t i = 0; i < desk->count; i++) {
        if (desk->running[i] == lease) {
            desk->running[i] = desk->running[--desk->count];
            return;
        }
    }
}

/* The first look at the clock after a pause. */
static void step(const struct check_book *book, struct desk *desk, const struct check_event *event)
{
    desk->step_us = event->at_us;
    for (size_t i = 0; i < desk->count; i++) {
        struct check_lease *lease = desk->running[i];
        int64_t limit_us = plus(lease->step.sent_us,
                                check_stretched(book, ms_to_us(2 * lease->step.interval_ms)));
        bool is_owed = lease->step.interval_ms > 0 && event->at_us >= limit_us;
        if (is_owed && !lease->step.is_owed)
            desk->owed++;
        lease->step.is_owed = is_owed;
    }
}

static void check_debts(struct check_book *book, struct desk *desk, const struct check_event *event)
{
    bool is_act = event->note == PAWLI_NOTE_START || event->note == PAWLI_NOTE_SEND ||
                  event->note == PAWLI_NOTE_SEND_SETTLE || event->note == PAWLI_NOTE_SEND_RELEASE;
    if (desk->owed == 0 || (!is_act && event->at_us <= desk->step_us))
        return;
    const struct check_lease *owed = NULL;
    for (size_t i = 0; i < desk->count && owed == NULL; i++) {
        if (desk->running[i]->step.is_owed)
            owed = desk->running[i];
    }
    char id[PAWL_ID_TEXT_MAX] = "?";
    if (owed != NULL)
        pawl_id_format(&owed->job->id, id);
    check_fail(book, CHECK_C12, event,
               "%s goes on after a pause before it aborts %zu, job %s first",
               check_worker_name(event->by), desk->owed, id);
    clear_debts(desk);
}

static bool walk(struct check_book *book, struct desk *desk, struct check_event *event)
{
    struct check_lease *lease = event->lease;
    switch (event->note) {
    case PAWLI_NOTE_WORKER_CRASH:
    case PAWLI_NOTE_WORKER_STOPPED:
        clear_debts(desk);
        desk->count = 0;
        return true;
    case PAWLI_NOTE_PAUSE_BEGIN:
        clear_debts(desk);
        return true;
    case PAWLI_NOTE_STEP:
        step(book, desk, event);
        return true;
    default:
        break;
    }
    if (lease == NULL || event->note == 0)
        return true;
    switch (event->note) {
    case PAWLI_NOTE_CONFIRMED:
        lease->step.sent_us = event->u.told.a;
        lease->step.interval_ms = event->u.told.c;
        settle_debt(desk, lease);
        return true;
    case PAWLI_NOTE_ABORT:
    case PAWLI_NOTE_ENDED:
        take(desk, lease);
        return true;
    case PAWLI_NOTE_START:
        check_debts(book, desk, event);
        return put(book, desk, lease);
    default:
        check_debts(book, desk, event);
        return true;
    }
}

bool check_pauses(struct check_book *book)
{
    for (struct check_worker *worker = book->workers; worker != NULL; worker = worker->next) {
        struct desk desk = {0};
        if (worker->pauses.count == 0)
            continue;
        for (struct check_event *event = worker->first; event != NULL; event = event->next_by) {
            if (!walk(book, &desk, event))
                return false;
        }
    }
    return true;
}
