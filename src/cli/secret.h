/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * secret.h - the name of a store without what must not be shown of it.
 */
#ifndef PAWLI_CLI_SECRET_H
#define PAWLI_CLI_SECRET_H

#include <stddef.h>

/*
 * Put a store's URL into `to` as it may be shown: of a file all of it; of a server everything but
 * for passwords and whatever else is not known to be harmless, which become `***`. Cut to fit.
 */
void pawli_secret_shown(const char *url, char *to, size_t to_size);

#endif
