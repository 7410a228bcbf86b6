/* The lines of ACL SETUSER that README gives, for a filter called "seen": what a user may
 * do who reads, adds, merges, or makes and removes filters. */
#ifndef HIBLOOM_TEST_ACL_LINES_H
#define HIBLOOM_TEST_ACL_LINES_H

#define KEYS "~seen ~seen:*"
#define READING KEYS " +getrange +strlen +pttl +bitcount +getbit +bitfield_ro"
#define ADDING READING " +setbit +bitfield +eval"
#define MERGING \
    ADDING " ~{seen}?[ab]* ~{seen:*}?[ab]* +bitpos +setrange +bitop +rename " \
           "(+psetex +pexpire +unlink ~{seen}?[ab]* ~{seen:*}?[ab]*)"
#define MAKING KEYS " +eval +getrange +strlen +pttl +bitcount +time +setrange +set +pexpire +persist +unlink"

#endif
