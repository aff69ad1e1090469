/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * payload.c - where the payload and the headers of a job or an event come from.
 * Owns:  the reading of files and standard input; the form of --header.
 * Never: looks into a payload; shows one, or the value of a header.
 */
#include "cli/payload.h"

#include "pawl/headers.h"

#include <errno.h>
#include <string.h>
#include <sysexits.h>

#define PIECE 65536

/* As others write it, blanks around the value do not count. */
bool pawli_header_add(const struct pawli_line *line, const char *option, const char *word,
                      char *headers, size_t headers_size)
{
    pawl_err err;
    char name[PAWL_HEADER_NAME_MAX + 2]; /* one more than is allowed, so that it is refused */
    char value[PAWL_HEADER_VALUE_MAX + 2];
    size_t name_len = strcspn(word, ":");
    if (word[name_len] != ':') {
        (void)pawli_line_refuse(line, "%s needs a name, a colon and a value", option);
        return false;
    }
    const char *from = word + name_len + 1;
    from += strspn(from, " \t");
    size_t value_len = strlen(from);
    while (value_len > 0 && strchr(" \t", from[value_len - 1]) != NULL)
        value_len--;
    (void)snprintf(name, sizeof(name), "%.*s", (int)name_len, word);    /* cut where it is */
    (void)snprintf(value, sizeof(value), "%.*s", (int)value_len, from); /* too long anyway */
    if (pawl_headers_add(headers, headers_size, name, value, &err) == PAWL_OK)
        return true;
    (void)pawli_line_refuse(line, "%s: %s", option, err.text);
    return false;
}

bool pawli_line_headers(const struct pawli_line *line, char *headers)
{
    for (size_t i = 0; i < line->repeats_count; i++)
        if (!pawli_header_add(line, "--header", line->repeats[i], headers,
                              PAWL_HEADERS_LEN_MAX + 1))
            return false;
    return true;
}

FILE *pawli_input_open(const struct pawli_line *line)
{
    const char *name = pawli_line_text(line, "--file");
    if (name == NULL || strcmp(name, "-") == 0)
        return stdin;
    FILE *file = fopen(name, "rb");
    if (file == NULL)
        (void)fprintf(stderr, "pawl %s: %s: %s\n", line->command->name, name, strerror(errno));
    return file;
}

void pawli_input_close(FILE *file)
{
    if (file != stdin)
        (void)fclose(file); /* only read from */
}

/* All of a file. Gives 0, or the exit code. */
static int read_file(const struct pawli_line *line, FILE *file, struct pawli_buffer *buffer)
{
    size_t got = 1;
    while (got > 0 && buffer->len <= PAWL_PAYLOAD_MAX) {
        if (!pawli_buffer_reserve(buffer, PIECE)) {
            (void)fprintf(stderr, "pawl %s: memory ran out\n", line->command->name);
            return EX_OSERR;
        }
        got = fread(buffer->bytes + buffer->len, 1, PIECE, file);
        buffer->len += got;
    }
    if (ferror(file) == 0)
        return EX_OK; /* what is too large is the library's to refuse */
    (void)fprintf(stderr, "pawl %s: the payload cannot be read\n", line->command->name);
    return EX_NOINPUT;
}

int pawli_payload_read(const struct pawli_line *line, struct pawli_buffer *buffer,
                       const void **ret_payload, size_t *ret_payload_len)
{
    if (line->arguments_count > 1 && strcmp(line->arguments[1], "-") != 0) {
        *ret_payload = line->arguments[1];
        *ret_payload_len = strlen(line->arguments[1]);
        return EX_OK;
    }
    FILE *file = pawli_input_open(line);
    int exit_code = file != NULL ? read_file(line, file, buffer) : EX_NOINPUT;
    if (file != NULL)
        pawli_input_close(file);
    *ret_payload = buffer->bytes;
    *ret_payload_len = buffer->len;
    return exit_code;
}
