/* The lines of ACL SETUSER that docs/access.md gives, for a filter called "seen": users that open or make and add,
 * that read, add, merge, or make and remove filters. tests/tools/docs.py compares the page with these. */
#ifndef HIBLOOM_TEST_ACL_LINES_H
#define HIBLOOM_TEST_ACL_LINES_H

#define KEYS "~seen ~seen:*"
#define READING KEYS " +getrange +strlen +pttl +bitcount +getbit +bitfield_ro"
#define ADDING READING " +setbit +bitfield +eval"
#define APPLYING ADDING " +time +setrange +set"
#define MERGING \
    ADDING " ~{seen}?[ab]* ~{seen:*}?[ab]* +bitpos +setrange +bitop +rename " \
           "(+psetex +pexpire +unlink ~{seen}?[ab]* ~{seen:*}?[ab]*)"
#define MAKING KEYS " +eval +getrange +strlen +pttl +bitcount +time +setrange +set +pexpire +persist +unlink"
#define REPLACING \
    KEYS " ~{seen}.new-* +eval +getrange +strlen +pttl +bitcount +time +setrange +pexpire +persist +unlink +rename " \
         "+bitop +psetex"

#endif
