/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * banned.h - functions that this project does not call, refused by the compiler. Included before
 * everything else by the build; the headers that declare them come first so that only our own use
 * is an error.
 */
#ifndef PAWLI_BASE_BANNED_H
#define PAWLI_BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#pragma GCC poison strcpy strcat sprintf vsprintf strtok atoi atol atoll localtime gmtime gets \
    strncpy

#endif
