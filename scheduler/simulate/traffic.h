// What communication puts on the links of a rank, and how long it takes while
// nothing else is on them. A rank has a link to the ranks of its host and one
// to those of others, each of which carries bytes out and in at the same time.
//
//   backend        operation       algorithm
//   nccl           all but these   one ring through the adapter of each rank
//                                  that a host has of the group: of k ranks
//                                  each sends and receives 1/k of what crosses
//                  ALL_REDUCE      that, or the tree below, whichever is sooner
//   gloo           all but these   one ring, in the order of the ranks: only
//                                  those next to another host's use the network
//                  small ones      straight to each rank
//                                  (proto/plan/direct_collectives.h)
//                  sums of narrow  scattered straight to each rank; where all
//                  or in order     have the sum, it is gathered by the ring
//                  REDUCE          the blocks of the sum straight to its root
//   shared_memory  all but these   as one ring
//   any            SHIFT           each rank to the next, so as one ring
//                  ALL_TO_ALL      1/N of the bytes straight to each rank
//
// Ring: Patarasuk and Yuan, 2009. NCCL's tree is a chain through the ranks of a
// host and a double binary tree over the hosts (Sanders, Speck and Traeff,
// 2009; NCCL 2.4). It carries 2 S bytes where a ring carries 2 (N - 1) / N S,
// with 2 log2(hosts) latencies of the network in place of 2 (hosts - 1). NCCL
// chooses by tables of its own (src/graph/tuning.cc), which are not used here.
#ifndef TROUPE_SCHEDULER_SIMULATE_TRAFFIC_H_
#define TROUPE_SCHEDULER_SIMULATE_TRAFFIC_H_

#include <array>
#include <string>

#include "proto/cluster.pb.h"
#include "scheduler/simulate/rates.h"

namespace troupe {

// Links of a rank.
enum Link : int { NETWORK_OUT, NETWORK_IN, LOCAL_OUT, LOCAL_IN };
constexpr int kLinks = 4;

// What is on each of them: bytes, or seconds.
using OnLinks = std::array<double, kLinks>;

enum class Algorithms { kNccl, kGloo, kSharedMemory };
Algorithms AlgorithmsOf(const std::string& backend);

// The ranks of a group, and the slowest of their links.
struct GroupLinks {
  LinkRate local;
  LinkRate network;
  int ranks = 1;
  int hosts = 1;
  int fewest = 1;     // ranks on a host
  int most = 1;       // the same
  int crossings = 0;  // ranks whose next one, of a ring, is on another host
  Algorithms algorithms = Algorithms::kSharedMemory;
  bool in_order = false;  // sums are, of the ranks (Group.Level)
};
// Equal for groups that are.
std::string LookOf(const GroupLinks& links);

// Where a rank is among them.
struct GroupPlace {
  int on_host = 1;            // ranks of the group there, itself too
  bool next_far = false;      // the next rank is on another host
  bool previous_far = false;  // the one before it
  int servers = 0;            // on its host (proto/plan/served.h)
};

struct Operation {
  CollectiveSize size;
  bool backward = false;  // of a SHIFT: to the rank before
  bool narrow = false;    // numbers of two bytes
  // Of blocks of unlike sizes: an ALL_TO_ALL of blocks that are as long as
  // their two ends say, or slices by weights. It is flat whatever the ways of
  // its group are.
  bool uneven = false;
};

struct Traffic {
  double latency = 0;  // seconds, before or after bytes move
  double moving = 0;   // seconds, of the slowest link of the group
  OnLinks bytes = {};  // that the rank's links carry
};

// Where roots differ, bytes are the mean of calls that have each rank as root
// once. One rank: nothing.
Traffic CollectiveTraffic(const GroupLinks& group, const GroupPlace& place,
                          const Operation& operation);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_SIMULATE_TRAFFIC_H_
