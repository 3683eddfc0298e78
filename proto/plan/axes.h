// The axes of the mesh that a job asks for.
#ifndef TROUPE_PROTO_PLAN_AXES_H_
#define TROUPE_PROTO_PLAN_AXES_H_

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "proto/plan.pb.h"

namespace troupe {

// In the mesh's order: neighbours on the last one share a host, so the
// chattiest comes last. Those that the job does not name have size 1; pipeline
// and data are there always, the others where they are larger. The axis
// "expert" has its ranks from parallelism.data.
std::vector<Axis> AxesOf(const ParallelismSpec& parallelism);

// Replicas that have micro-batches of their own: of parallelism.data, groups of
// ranks that share experts are one.
int ReplicasOf(const ParallelismSpec& parallelism);

int Power(int base, int exponent);
// The largest whose power is no more than `value`.
int Root(int value, int exponent);
// Of a whole number, 2 or more.
bool IsPower(int value, int exponent);

// How many layers of a square of 4 ranks or more each so many ranks could be,
// two or more; the fewest first.
std::vector<int> DepthsOf(int ranks);

// The field that says how large an axis is: size ^ power x ranks.
struct SizeField {
  // Its value, where the axis has so many places.
  int ValueFor(int size) const { return Power(size, power) * ranks; }
  // In words, with what else the job has to say then: "8 with
  // parallelism.tensor_depth: 2".
  std::string TextFor(int size) const;

  std::string name;
  int value = 1;
  int ranks = 1;        // on an axis of another size
  int power = 1;        // axes of this size
  std::string part_of;  // the field that counts these ranks, too; or empty
  int whole = 1;        // its value
  int layers = 0;       // 2.5d: how many there are; 0: as many as places
  bool in_layers = false;
};
SizeField SizeFieldOf(const ParallelismSpec& parallelism,
                      absl::string_view axis);

// Whether an axis may have this size, as far as the other one of its field's
// ranks tells: where there are two, each has 2 or more.
bool MayBe(const SizeField& field, int size);

// The ranks of parallelism.tensor lie along "tensor", or as tensor_method says:
//
//   2d     evenly along "tensor_row" and "tensor_column"
//   2.5d   the same, in tensor_depth layers along "tensor_depth"; where it does
//          not say, in as few as there can be
//   3d     evenly along "tensor_x", "tensor_y" and "tensor_z"
//
// 1 where there is no such axis.
int SizeOfAxis(const ParallelismSpec& parallelism, absl::string_view axis);
// 1d where nobody says another, or there is one rank.
absl::string_view TensorMethodOf(const ParallelismSpec& parallelism);
bool Is3D(const ParallelismSpec& parallelism);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_AXES_H_
