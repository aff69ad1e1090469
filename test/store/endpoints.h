/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * endpoints.h - the small verbs of helpers.h for endpoints and events.
 */
#ifndef PAWLT_STORE_ENDPOINTS_H
#define PAWLT_STORE_ENDPOINTS_H

#include "pawl/endpoint.h"
#include "store/helpers.h"

#define ENDPOINT_URL "https://hooks.example/in"
#define SECRET_1     "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
#define SECRET_2     "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
#define SECRET_3     "whsec_BBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB"
#define SECRET_4     "whsk_CCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCCC="
#define SECRET_5     "whsec_DDDDDDDDDDDDDDDDDDDDDDDDDDDDDDDD"

pawl_endpoint_settings endpoint_settings(const char *topics);
pawl_code try_add(struct stage *s, const char *name, const pawl_endpoint_settings *settings,
                  const char *secret, pawl_err *err);

/* Each must be OK. */
void add_endpoint(struct stage *s, const char *name, const char *topics);
void add_ordered(struct stage *s, const char *name, const char *topics);
pawl_endpoint endpoint(struct stage *s, const char *name);
pawl_endpoint_credentials credentials(struct stage *s, const char *name);
size_t count_endpoints(struct stage *s);
void turn_off(struct stage *s, const char *name);
void turn_on(struct stage *s, const char *name);

pawl_published publish_row(struct stage *s, const pawl_publish_row *row);
pawl_published publish_type(struct stage *s, const char *type);

#endif
