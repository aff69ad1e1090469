/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * intervals.c - a set of numbers as ordered disjoint intervals.
 * Owns:  the chunks that hold the intervals, and the tree that orders them.
 * Never: takes a number out; lets two intervals touch; allocates after it has begun to change.
 *
 * The intervals stand packed in chunks, so that one of them costs about 22 bytes where a tree node
 * of its own would cost 64. What holds between calls:
 *  I1  The intervals rise from each to the next, in a chunk and from chunk to chunk, with a gap of
 *      at least one number between them.
 *  I2  No chunk is empty.
 *  I3  A chunk is split only where its neighbours are at least three quarters full, or do not
 *      exist; and one that loses an interval is merged with a neighbour where the two together
 *      leave a quarter of a chunk free. So whatever order values come in, an interval costs less
 *      than 32 bytes while the set grows, and less than 48 while its gaps close.
 *  I4  A set that has never had two intervals has no chunk: there may be millions of such sets.
 */
#include "core/intervals.h"

#include <assert.h>

/* Larger packs better; smaller keeps the one chunk of a contiguous set cheap. */
#define CHUNK_INTERVALS 32

/* Two neighbours are made one at or below this: with room left, so that a merge is not undone by
 * the next few intervals. */
#define MERGE_INTERVALS (CHUNK_INTERVALS - CHUNK_INTERVALS / 4)

/* A neighbour that holds no more than this takes over a part of a full chunk instead of a split. */
#define SHARE_INTERVALS (CHUNK_INTERVALS - CHUNK_INTERVALS / 4)

struct pawli_chunk {
    RB_ENTRY(pawli_chunk) entry;
    size_t count;
    struct pawli_interval intervals[CHUNK_INTERVALS];
};

/* Where a value belongs: before intervals[index] of `chunk`. */
struct place {
    struct pawli_chunk *chunk;
    size_t index;
};

static int compare_chunks(const struct pawli_chunk *a, const struct pawli_chunk *b)
{
    int64_t a_first = a->intervals[0].first;
    int64_t b_first = b->intervals[0].first;
    return (a_first > b_first) - (a_first < b_first);
}

/* Not RB_GENERATE_STATIC: it needs an __unused that only the BSDs define. */
RB_GENERATE_INTERNAL(pawli_chunk_tree, pawli_chunk, entry, compare_chunks,
                     static __attribute__((unused)))

/* The neighbours of a chunk; NULL at either end. The macros do not look at the tree's head. */
static struct pawli_chunk *chunk_below(struct pawli_chunk *chunk)
{
    return RB_PREV(pawli_chunk_tree, NULL, chunk);
}

static struct pawli_chunk *chunk_above(struct pawli_chunk *chunk)
{
    return RB_NEXT(pawli_chunk_tree, NULL, chunk);
}

void pawli_intervals_init(struct pawli_intervals *set)
{
    assert(set != NULL);

    *set = (struct pawli_intervals){.chunks_count = 0};
}

void pawli_intervals_clear(struct pawli_intervals *set)
{
    if (set == NULL)
        return;

    struct pawli_chunk *chunk = RB_MIN(pawli_chunk_tree, &set->chunks);
    while (chunk != NULL) {
        struct pawli_chunk *next = chunk_above(chunk);
        RB_REMOVE(pawli_chunk_tree, &set->chunks, chunk);
        free(chunk);
        chunk = next;
    }
    pawli_intervals_init(set);
}

/* The place of `value`: the interval before it, if there is one in that chunk, begins at or below
 * `value`; the one at it begins above. The chunk is NULL in the empty set only. */
static struct place find_place(const struct pawli_intervals *set, int64_t value)
{
    struct pawli_chunk *chunk = NULL;
    struct pawli_chunk *lowest = NULL;
    for (struct pawli_chunk *at = RB_ROOT(&set->chunks); at != NULL;) {
        if (at->intervals[0].first <= value) {
            chunk = at;
            at = RB_RIGHT(at, entry);
        } else {
            lowest = at;
            at = RB_LEFT(at, entry);
        }
    }
    if (chunk == NULL)
        return (struct place){.chunk = lowest, .index = 0};

    size_t low = 1;
    size_t high = chunk->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (chunk->intervals[middle].first <= value)
            low = middle + 1;
        else
            high = middle;
    }
    return (struct place){.chunk = chunk, .index = low};
}

bool pawli_intervals_has(const struct pawli_intervals *set, int64_t value)
{
    assert(set != NULL);

    if (set->chunks_count == 0)
        return set->intervals_count == 1 && set->alone.first <= value && value <= set->alone.last;
    struct place place = find_place(set, value);
    return place.chunk != NULL && place.index > 0 &&
           value <= place.chunk->intervals[place.index - 1].last;
}

static void remove_chunk(struct pawli_intervals *set, struct pawli_chunk *chunk)
{
    RB_REMOVE(pawli_chunk_tree, &set->chunks, chunk);
    set->chunks_count--;
    free(chunk);
}

/* Move all of `right` to the end of `left`, its neighbour, where that leaves room enough. */
static bool merge_chunks(struct pawli_intervals *set, struct pawli_chunk *left,
                         struct pawli_chunk *right)
{
    if (left == NULL || right == NULL || left->count + right->count > MERGE_INTERVALS)
        return false;

    memcpy(&left->intervals[left->count], right->intervals,
           right->count * sizeof(struct pawli_interval));
    left->count += right->count;
    remove_chunk(set, right);
    return true;
}

/* Take intervals[index] out of `chunk`, and keep I2 and I3. The chunk may be gone afterwards. */
static void remove_interval(struct pawli_intervals *set, struct pawli_chunk *chunk, size_t index)
{
    assert(index < chunk->count);

    chunk->count--;
    set->intervals_count--;
    memmove(&chunk->intervals[index], &chunk->intervals[index + 1],
            (chunk->count - index) * sizeof(struct pawli_interval));

    if (chunk->count == 0) {
        remove_chunk(set, chunk);
        return;
    }
    if (!merge_chunks(set, chunk_below(chunk), chunk))
        (void)merge_chunks(set, chunk, chunk_above(chunk)); /* may fit */
}

/* Make room in the full chunk of a place by moving some of it to the end of the chunk below. */
static void share_below(struct place *place, struct pawli_chunk *below)
{
    struct pawli_chunk *full = place->chunk;
    size_t moved = (full->count - below->count) / 2;
    memcpy(&below->intervals[below->count], full->intervals, moved * sizeof(struct pawli_interval));
    full->count -= moved;
    memmove(full->intervals, &full->intervals[moved], full->count * sizeof(struct pawli_interval));
    if (place->index < moved)
        *place = (struct place){.chunk = below, .index = below->count + place->index};
    else
        place->index -= moved;
    below->count += moved;
}

/* The same to the beginning of the chunk above. */
static void share_above(struct place *place, struct pawli_chunk *above)
{
    struct pawli_chunk *full = place->chunk;
    size_t moved = (full->count - above->count) / 2;
    memmove(&above->intervals[moved], above->intervals,
            above->count * sizeof(struct pawli_interval));
    full->count -= moved;
    memcpy(above->intervals, &full->intervals[full->count], moved * sizeof(struct pawli_interval));
    above->count += moved;
    if (place->index > full->count)
        *place = (struct place){.chunk = above, .index = place->index - full->count};
}

/* Make room by splitting the full chunk of a place in two. Gives the new one, which belongs into
 * the tree once the interval is in its place, or NULL: no memory, and nothing has changed. */
static struct pawli_chunk *split_chunk(struct place *place)
{
    struct pawli_chunk *added = malloc(sizeof *added);
    if (added == NULL)
        return NULL;

    /* At either end nothing is left behind half empty: rising or falling values fill each chunk. */
    struct pawli_chunk *full = place->chunk;
    size_t kept = CHUNK_INTERVALS / 2;
    if (place->index == 0 || place->index == full->count)
        kept = place->index;
    added->count = full->count - kept;
    memcpy(added->intervals, &full->intervals[kept], added->count * sizeof(struct pawli_interval));
    full->count = kept;
    if (place->index > kept || full->count == CHUNK_INTERVALS)
        *place = (struct place){.chunk = added, .index = place->index - kept};
    return added;
}

/* Make room at a place, in the cheapest way. *ret_added is as split_chunk() gives it, or NULL. */
static pawl_code make_room(struct place *place, struct pawli_chunk **ret_added)
{
    *ret_added = NULL;
    struct pawli_chunk *full = place->chunk;
    if (full->count < CHUNK_INTERVALS)
        return PAWL_OK;

    struct pawli_chunk *below = chunk_below(full);
    struct pawli_chunk *above = chunk_above(full);
    if (below != NULL && below->count <= SHARE_INTERVALS) {
        share_below(place, below);
    } else if (above != NULL && above->count <= SHARE_INTERVALS) {
        share_above(place, above);
    } else {
        *ret_added = split_chunk(place);
        if (*ret_added == NULL)
            return PAWL_NO_MEMORY;
    }
    assert(place->chunk->count < CHUNK_INTERVALS);
    return PAWL_OK;
}

/* Put an interval of one number where it touches no other. */
static pawl_code insert_interval(struct pawli_intervals *set, struct place place, int64_t value)
{
    struct pawli_chunk *added = NULL;
    pawl_code rc = make_room(&place, &added);
    if (rc != PAWL_OK)
        return rc;

    struct pawli_chunk *chunk = place.chunk;
    memmove(&chunk->intervals[place.index + 1], &chunk->intervals[place.index],
            (chunk->count - place.index) * sizeof(struct pawli_interval));
    chunk->intervals[place.index] = (struct pawli_interval){.first = value, .last = value};
    chunk->count++;
    set->intervals_count++;

    if (added != NULL) {
        struct pawli_chunk *twin = RB_INSERT(pawli_chunk_tree, &set->chunks, added);
        assert(twin == NULL); /* I1 */
        (void)twin;           /* read by the assert only */
        set->chunks_count++;
    }
    return PAWL_OK;
}

/* Put a value into the interval that stands alone (I4), or make it that. False: it needs one of its
 * own beside it. */
static bool add_alone(struct pawli_intervals *set, int64_t value)
{
    struct pawli_interval *alone = &set->alone;
    if (set->intervals_count == 0) {
        *alone = (struct pawli_interval){.first = value, .last = value};
        set->intervals_count = 1;
        return true;
    }
    /* Neither sum leaves the range: the value lies beyond. */
    if (value > alone->last && alone->last + 1 == value)
        alone->last = value;
    else if (value < alone->first && alone->first - 1 == value)
        alone->first = value;
    return alone->first <= value && value <= alone->last;
}

/* Give the interval that stands alone a chunk. */
static pawl_code move_alone(struct pawli_intervals *set)
{
    struct pawli_chunk *chunk = malloc(sizeof *chunk);
    if (chunk == NULL)
        return PAWL_NO_MEMORY;
    chunk->count = 1;
    chunk->intervals[0] = set->alone;
    struct pawli_chunk *twin = RB_INSERT(pawli_chunk_tree, &set->chunks, chunk);
    assert(twin == NULL);
    (void)twin; /* read by the assert only */
    set->chunks_count = 1;
    return PAWL_OK;
}

pawl_code pawli_intervals_add(struct pawli_intervals *set, int64_t value)
{
    assert(set != NULL);

    if (set->chunks_count == 0) {
        if (add_alone(set, value))
            return PAWL_OK;
        pawl_code rc = move_alone(set);
        if (rc != PAWL_OK)
            return rc;
    }
    struct place place = find_place(set, value);

    struct pawli_interval *below = place.index > 0 ? &place.chunk->intervals[place.index - 1]
                                                   : NULL;
    if (below != NULL && value <= below->last)
        return PAWL_OK;

    struct place above_place = place;
    if (place.index == place.chunk->count) {
        above_place.chunk = chunk_above(place.chunk);
        above_place.index = 0;
    }
    struct pawli_interval *above = above_place.chunk != NULL
                                       ? &above_place.chunk->intervals[above_place.index]
                                       : NULL;

    /* below->last < value < above->first, so that neither sum leaves the range. */
    bool has_neighbour_below = below != NULL && below->last + 1 == value;
    bool has_neighbour_above = above != NULL && above->first - 1 == value;
    if (has_neighbour_below && has_neighbour_above) {
        below->last = above->last;
        remove_interval(set, above_place.chunk, above_place.index);
    } else if (has_neighbour_below) {
        below->last = value;
    } else if (has_neighbour_above) {
        above->first = value;
    } else {
        return insert_interval(set, place, value);
    }
    return PAWL_OK;
}

bool pawli_intervals_first(const struct pawli_intervals *set, struct pawli_interval *ret_interval)
{
    assert(set != NULL && ret_interval != NULL);

    if (set->intervals_count == 0)
        return false;
    struct pawli_chunk_tree chunks = set->chunks; /* the macro takes no constant one */
    struct pawli_chunk *chunk = RB_MIN(pawli_chunk_tree, &chunks);
    *ret_interval = chunk != NULL ? chunk->intervals[0] : set->alone;
    return true;
}

bool pawli_intervals_next(const struct pawli_intervals *set, struct pawli_interval *interval)
{
    assert(set != NULL && interval != NULL);

    struct place place = find_place(set, interval->last);
    if (place.chunk != NULL && place.index == place.chunk->count)
        place = (struct place){.chunk = chunk_above(place.chunk), .index = 0};
    if (place.chunk == NULL)
        return false;
    *interval = place.chunk->intervals[place.index];
    return true;
}

size_t pawli_intervals_count(const struct pawli_intervals *set)
{
    assert(set != NULL);

    return set->intervals_count;
}

size_t pawli_intervals_bytes(const struct pawli_intervals *set)
{
    assert(set != NULL);

    return set->chunks_count * sizeof(struct pawli_chunk);
}
