/* faults.h: what a fault makes of the command that it strikes, of its client, and of its server. */
#ifndef HIBLOOM_SIM_FAULTS_H
#define HIBLOOM_SIM_FAULTS_H

#include "sim/wires.h"

enum fate { FATE_GOES_ON, FATE_HELD, FATE_GONE };
enum fate strike(struct wire *, const struct decision *, struct blob key);

#endif
