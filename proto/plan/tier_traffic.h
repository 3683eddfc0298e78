// What moved between tiers of memory while a program ran, and for how long the
// rank had nothing else to compute: from a timeline, measured or predicted.
//
// A lane that computes (COMPUTE, HOST) waits for a move from when it could have
// gone on, were there no moves, until the last move ends that its next
// instruction waits for; and so does the rank for those that nobody waits for
// but the program's end. What such a move itself waited for another move counts
// for that one's tier. Where another lane computes meanwhile, nobody waits.
#ifndef TROUPE_PROTO_PLAN_TIER_TRAFFIC_H_
#define TROUPE_PROTO_PLAN_TIER_TRAFFIC_H_

#include <vector>

#include "proto/plan.pb.h"
#include "proto/plan/lanes.h"
#include "proto/program.pb.h"
#include "proto/timeline.pb.h"

namespace troupe {

// Whether it has any FETCH or EVICT.
bool MovesBetweenTiers(const Program& program);

// Of a rank: one for each tier that something moved to or from, HOST first.
// Instructions that the timeline lacks took no time.
std::vector<TierTraffic> TrafficOf(const Program& program, const Lanes& lanes,
                                   const RankTimeline& timeline);

// Adds one rank's traffic to that of others in the same step, as a step's
// record has it: bytes of all, times of the rank where they are longest.
void AddTraffic(const TierTraffic& of_rank,
                google::protobuf::RepeatedPtrField<TierTraffic>& sum);

// What is predicted of all ranks, as a step's record would have it.
google::protobuf::RepeatedPtrField<TierTraffic> PredictedTraffic(
    const Prediction& prediction);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_TIER_TRAFFIC_H_
