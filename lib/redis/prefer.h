/* prefer.h: the layout, hashes and segments of a new filter whose maker prefers fast adds, or fast look-ups.
 *
 * Any client finds the filter again, whatever it would pick itself: what a text leaves out is taken as stored. */
#ifndef HIBLOOM_PREFER_H
#define HIBLOOM_PREFER_H

#include "spec/request.h"

/* Sizes request->spec by request->prefer, where the text leaves something to choose. */
hibloom_status prefer_pick(struct request *request, struct error *error);

#endif
