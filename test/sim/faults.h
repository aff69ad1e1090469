/*
 * SPDX-License-Identifier: Apache-2.0
 *
 * faults.h - what goes wrong from time to time, beside single messages (net.h).
 */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

struct sim_world;

/* Plan the first strike of each class that this seed has turned on. */
void sim_faults_start(struct sim_world *world);

/* Nothing new goes wrong from here on. What is under way runs out within sim_faults_tail_us(). */
void sim_faults_stop(struct sim_world *world);
long long sim_faults_tail_us(const struct sim_world *world);

/* The hook behind PAWLI_STRETCH: a call waits inside the store while the world goes on. `user` is
 * the world. */
void sim_faults_stretch(int point, void *user);

#endif
