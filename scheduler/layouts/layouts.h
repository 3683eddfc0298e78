// Where the tensors of a unit lie over ranks: a row is one way in which ranks
// share a unit, and says all there is to say of it. Along each of its axes of
// the mesh it says which dims, by what they are, are cut. Everything else
// follows: what each rank computes (proto/plan/ops, the kinds' cuts), which
// exchanges stand between (cut_units.h), bytes and memory. Rows compose, as
// each only says where things lie; where two axes want to cut a tensor, the one
// that cuts first does.
//
// What a job says by which fields, which numbers of ranks there may be, what
// `troupe plan --explain` tries, what ZeRO may do and where ranks should run is
// said by the row as well. No other file knows a row by its name.
//
// To add one: a file like tensor_1d.cc, one line here, one in the table
// (docs/how_to_add/layout.md).
#ifndef TROUPE_SCHEDULER_LAYOUTS_LAYOUTS_H_
#define TROUPE_SCHEDULER_LAYOUTS_LAYOUTS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/job.pb.h"
#include "proto/plan/unit_list.h"
#include "proto/unit.pb.h"

namespace troupe {

struct AxisRules;  // axis_rules.h

// What an axis does to dims of a kind.
struct DimRule {
  Dim::Kind kind = Dim::KIND_UNSPECIFIED;
  // The field that says how many there are, for the refusal of a cut that does
  // not fit.
  absl::string_view field;
  // Sizes that the axis does not divide: refused, but for one of
  bool pads = false;    // the last ranks have less, and padding behind it
  bool shares = false;  // where there are fewer than ranks, neighbours have the
                        // same one
  // Batches are loaded so, in front of what other axes cut; else a sequence is
  // cut by the rows of all samples as one.
  bool loaded = false;
  // Each rank has two pieces, one from either end.
  bool zigzag = false;
  // Nothing rests so; ops that cannot compute on what the other rules leave
  // have their operands turned to lie so.
  bool turned = false;
  // Of several axes that cut it, the outermost of the mesh has the outermost
  // pieces, whichever cuts first.
  bool in_mesh_order = false;
  // A field of yes and no of the row, with which the rule holds; empty: always.
  absl::string_view with;
};

// An axis of the mesh, where it is cut along.
struct AxisSpan {
  std::string name;
  int size = 1;
};

// What becomes, between uses, of what the ranks along an axis hold alike.
enum class Resting {
  kWhole,   // each has all of it
  kDealt,   // slices over them, where parallelism.zero says so
  kSliced,  // slices over them, always
};

// An axis of the mesh that a row has ranks along.
struct RowAxis {
  absl::string_view name;
  std::vector<DimRule> rules;  // the first that fits a tensor cuts it
  // Optional: before any axis cuts them, makes ops that its cuts need of
  // others.
  void (*prepare)(const AxisSpan& axis, UnitList& units) = nullptr;
  // Optional: of a table that is cut so, makes several ops of one that needs
  // what other ranks have, with exchanges between.
  void (*rewrite)(const AxisSpan& axis, UnitTable& table) = nullptr;
  Resting resting = Resting::kWhole;
  // A strategy may have its ranks along several neighbouring axes of the mesh:
  // cutting along one after the other is cutting along all.
  bool may_span = false;
  // Its ranks exchange several times in each unit, and computing waits for it:
  // they belong on one host.
  bool on_one_host = false;
};

// The field that says how large an axis is: size ^ power x ranks.
struct SizeField {
  // Its value, where the axis has `size` places.
  int ValueFor(int size) const;
  // In words, with what else the job has to say then: "8 with
  // parallelism.tensor_depth: 2".
  std::string TextFor(int size) const;
  // Whether an axis may have this size, as far as the other one of its field's
  // ranks tells: where there are two, each has 2 or more.
  bool MayBe(int size) const;

  std::string name;
  int value = 1;
  int ranks = 1;        // on an axis of another size
  int power = 1;        // axes of this size
  std::string part_of;  // the field that counts these ranks, too; or empty
  int whole = 1;        // its value
  // Optional: TextFor.
  std::string (*text)(const SizeField& field, int size) = nullptr;
  std::string without;  // what to say in place of it, where it may be left out
};

struct AxisExtent {
  int size = 1;
  SizeField field;
};

struct LayoutRow {
  // Of ParallelismSpec: counts the ranks (RankFields, proto/plan/sharing.h).
  absl::string_view field;
  // What the method of that field (`tensor_method`) says for this row. Empty:
  // there is no other way. A job that says nothing has the field's first row.
  absl::string_view method;
  bool implied = false;  // a resolved job says nothing either
  // The row's own fields, besides these two.
  std::vector<std::string> fields;
  // Outermost first: neighbours along the last one are neighbours in the mesh.
  std::vector<RowAxis> axes;

  // By axis. May be asked for ranks that `resolve` refuses. nullptr: there is
  // one axis, which has all ranks.
  std::vector<AxisExtent> (*sizes)(const ParallelismSpec& parallelism) =
      nullptr;
  // Of a field of data: the axes that its ranks are along, those of other rows
  // among them. nullptr: its own.
  std::vector<std::string> (*along)(const ParallelismSpec& parallelism) =
      nullptr;
  // Changes what these axes do. nullptr: nothing.
  void (*fold)(const ParallelismSpec& parallelism,
               std::vector<AxisRules>& rules) = nullptr;
  // Fills in the row's fields, and refuses what it cannot be: InvalidArgument
  // that begins with the path of a field. Called with 2 ranks or more. nullptr:
  // takes any.
  absl::Status (*resolve)(ParallelismSpec& parallelism) = nullptr;
  absl::string_view examples = "2 or more";  // of ranks, in words

  // Whether units of a user's graph may be shared so.
  bool takes_graphs = true;
  // Why ranks that share units so write no text while they train (data.sample).
  // Empty: they do.
  absl::string_view no_sample;

  // What `--explain` tries: adds what of the row's fields there may be to a
  // parallelism that has ranks and method. nullptr: it does not try the row.
  void (*tries)(const ParallelismSpec& parallelism,
                std::vector<ParallelismSpec>& ways) = nullptr;
  bool tried_last = false;  // behind all ways with other rows only
  // Fields by which the same ranks may share some of the units, where this row
  // is the only one: `--explain` tries strategies with them.
  std::vector<std::string> tried_beside;
  // Of a field of data: adds what `--explain` tries of it, besides leaving it
  // out, for a parallelism that has all else. nullptr: it does not try the row.
  void (*tries_of_data)(const ParallelismSpec& parallelism,
                        const ModelSpec& model,
                        std::vector<ParallelismSpec>& ways) = nullptr;
  // Whether a way that is shown leaves out the row's fields where they are what
  // `resolve` fills in.
  bool leaves_out_defaults = false;

  // With which numbers of ranks an elastic job goes on, of `ranks`; ascending.
  // nullptr: with as many, or without the field where others are fewer; of a
  // field of data, with as many as divide what is left of data.
  std::vector<int> (*fewer)(int ranks) = nullptr;

  // A job that fits nowhere is told to use more ranks: of the row that it has,
  // or of those that are advised.
  bool is_advised = false;
  // The field and value with which the row needs less memory, on the same
  // ranks; and why, where that is not plain.
  struct Leaner {
    std::string field;
    std::string value;
    std::string why;
  } leaner;
};

// Columns within attention and the MLP, and those of the logits.
std::vector<DimRule> RulesOfInnerColumns();

LayoutRow Batch();
LayoutRow Experts();
LayoutRow Tensor1D();
LayoutRow Tensor2D();
LayoutRow Tensor25D();
LayoutRow Tensor3D();
LayoutRow Ulysses();
LayoutRow RingAttention();
LayoutRow RingSelfAttention();
LayoutRow UlyssesInRings();

// All there are. Those of one field stand together; of the axes of two fields,
// those of the first cut first. Within a row, the last axis does.
const std::vector<LayoutRow>& Layouts();

// Of a field, its first row first.
std::vector<const LayoutRow*> RowsOf(absl::string_view field);
// That of the field's method; the first where it names none that there is.
const LayoutRow& RowOf(const ParallelismSpec& parallelism,
                       absl::string_view field);
// Of the fields of more than one rank, in the order in which they cut.
std::vector<const LayoutRow*> RowsInUse(const ParallelismSpec& parallelism);

// "tensor_method", and "parallelism.tensor_method: 3d". REQUIRES that the row's
// field has several rows.
std::string MethodNameOf(const LayoutRow& row);
std::string MethodText(const LayoutRow& row);

// Whether an axis of the row cuts something else than samples, so that units
// exchange.
bool CutsWithinSamples(const LayoutRow& row);

// Values of LayoutRow.tries and .fewer.
void TryAsItIs(const ParallelismSpec& parallelism,
               std::vector<ParallelismSpec>& ways);
std::vector<int> DivisorsOf(int ranks);
std::vector<int> AllOrOne(int ranks);

}  // namespace troupe

#endif  // TROUPE_SCHEDULER_LAYOUTS_LAYOUTS_H_
