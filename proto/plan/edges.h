// Which unit reads which output of which other: the graph that the units of a
// plan are. An output is a tensor of home OUTPUT, an input one of home INPUT
// (ports.h); a unit without a table has one output, unless it is the last. Each
// output has one reader.
#ifndef TROUPE_PROTO_PLAN_EDGES_H_
#define TROUPE_PROTO_PLAN_EDGES_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "proto/plan.pb.h"
#include "proto/unit.pb.h"

namespace troupe {

// From an output of one unit to an input of a later one.
struct Edge {
  int from = 0;    // unit
  int output = 0;  // of it
  int to = 0;      // unit
  int input = 0;   // of it
  // The output whose ACTIVATION has the value: the first that is the same.
  int value = 0;
  bool has_gradient = true;
};

class Edges {
 public:
  // REQUIRES units as CheckUnits wants them. Keeps nothing of the plan.
  explicit Edges(const Plan& plan);

  // All, in the order of their readers, then of these' inputs.
  const std::vector<Edge>& all() const { return edges_; }
  // Of what a unit reads, by input.
  absl::Span<const Edge> Into(int unit) const;
  // To those that read a unit's outputs, in the order of all().
  std::vector<Edge> OutOf(int unit) const;

 private:
  std::vector<Edge> edges_;
  std::vector<int> first_;  // by unit: of edges_, and their number
};

// Of one output, for one micro-batch; 0 where the unit has no such.
int64_t OutputBytes(const Plan& plan, int unit, int output);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_EDGES_H_
