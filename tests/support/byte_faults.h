/* Faults at any byte of a dialogue, committed by a proxy before a server. */
#ifndef HIBLOOM_TEST_BYTE_FAULTS_H
#define HIBLOOM_TEST_BYTE_FAULTS_H

#include "dialogue.h"
#include "proxy.h"

enum { BYTE_FAULTS = 6, BYTE_FAULT_WALKS = 2 * BYTE_FAULTS };

struct byte_faults {
    struct proxy *proxy;
    struct dialogue dialogue;        /* its uri, options.commands, spec and servers are set */
    void (*hold)(struct dialogue *); /* holds it: dialogue_hold, or the same on an event loop */
    unsigned walks;                  /* of the whole program */
};

/* All of them, both ways. */
void byte_faults_commit(struct byte_faults *faults);

/* The same on a filter of one key, with SETBIT; and of three, with BITFIELD. */
void byte_faults_on_one_key(struct byte_faults *faults);
void byte_faults_on_several_keys(struct byte_faults *faults);

#endif
