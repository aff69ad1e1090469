/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * adopt_tell.h - how the report of `pawl adopt` is told: as text for people, or as one JSON
 * document.
 */
#ifndef PAWLI_CLI_ADOPT_TELL_H
#define PAWLI_CLI_ADOPT_TELL_H

#include "pawl/adopt.h"

#include <stdio.h>

/* On standard output what there is; of a report with problems, these go to `problems` as text. */
void pawli_adopt_tell_text(const pawl_adopt_report *report, bool is_dry_run, FILE *problems);
void pawli_adopt_tell_json(const pawl_adopt_report *report, bool is_dry_run);

#endif
