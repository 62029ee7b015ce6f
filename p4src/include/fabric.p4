// What comes before a LoadBalancer control: headers, metadata, and the controls that it can use.
#ifndef FABRIC_P4
#define FABRIC_P4

#include <core.p4>
#include <v1model.p4>
#include "sizes.p4"
#include "ids.p4"
#include "headers.p4"
#include "queue_stats.p4"
#include "schedule.p4"

#endif
