/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * cloudevents_fuzz.h - the fuzz target of CloudEvents, for the unit suite and for libFuzzer.
 */
#ifndef PAWLI_TEST_CLOUDEVENTS_FUZZ_H
#define PAWLI_TEST_CLOUDEVENTS_FUZZ_H

#include "webhook/cloudevents.h"

/* Check an event, print it both ways, and abort where the property does not hold. True where it was
 * accepted. */
bool cloudevents_fuzz_one(const struct pawli_cloud_event *event);

/* libFuzzer's entry: lines of subject, content type, source and traceparent, then the payload. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
