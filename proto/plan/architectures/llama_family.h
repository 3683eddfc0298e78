// What Llama and its relatives share (Touvron et al., arXiv 2302.13971):
// root-mean-square norms, rotary positions, grouped-query attention, SwiGLU; of
// dropout only that of attention probabilities, as in `transformers`.
//
//   r = x + attention(norm_1(x));  y = r + mlp(norm_2(r))
//
// Weights of queries, keys and values lie one after another in the flat buffer,
// as do gate and up, so that where their sizes are multiples of kFlatAlignment
// they are one product.
//
// Rotary positions of training passes are those of the micro-batch's sequence
// length, those of decoding of max_position_embeddings, so that a cached key
// stays as it is while a text grows; the two differ only for scalings that look
// at the length (dynamic, longrope).
#ifndef TROUPE_PROTO_PLAN_ARCHITECTURES_LLAMA_FAMILY_H_
#define TROUPE_PROTO_PLAN_ARCHITECTURES_LLAMA_FAMILY_H_

#include <initializer_list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/optional.h"
#include "proto/job.pb.h"
#include "proto/plan/architectures/experts_section.h"
#include "proto/plan/micro_batch.h"
#include "proto/plan/unit_builder.h"
#include "proto/plan/unit_list.h"

namespace troupe {

// In what the members of the family differ.
struct LlamaOptions {
  bool qkv_bias = false;     // of queries, keys and values
  bool output_bias = false;  // of attention's output
  bool mlp_bias = false;
  bool head_norms = false;  // of each head of queries and keys
  bool whole_norms = false;  // of all heads of queries, and of keys, as one row
  // What takes the place of the family's attention, from the normed x on, the
  // last product included; null: nothing. `at` is the prefix of its names.
  int (*attention)(const ModelSpec& model, const MicroBatchShape& shape,
                   const std::string& at, int x, UnitBuilder& unit) = nullptr;
  // The experts of a layer; nothing, or null: it has an ordinary MLP.
  absl::optional<ExpertsSection> (*experts)(const ModelSpec& model,
                                            int64_t layer) = nullptr;
  // Multi-token prediction (DeepSeek-V3, arXiv 2412.19437, section 2.2): so
  // many modules behind the head, each a unit of its own. Of position i, with t
  // its token, y_0 what the head projects, and the head's projection P,
  //
  //   x   = eh_proj [enorm(embedding(t_i+k)), hnorm(y_k-1)]
  //   y_k = shared_head.norm(block(x)),  loss of P y_k against t_i+k+1
  //
  // The units before are as without modules, so that text is generated, and a
  // job goes on, without them.
  int modules = 0;
  double module_weight = 0;  // of the loss of each, where it is added
};

UnitList LlamaUnits(const ModelSpec& model, const MicroBatchShape& shape,
                    const LlamaOptions& options);

// What RopeArgs needs of the job, for training and for decoding.
UnitBuilder::RopeArgs RopeOf(const ModelSpec& model,
                             const MicroBatchShape& shape, int x);

// The family's fields, then a member's own.
std::vector<std::string> LlamaFields(std::initializer_list<const char*> own);

// InvalidArgument as Architecture::check, of the family's fields.
absl::Status CheckLlama(const ModelSpec& model);

// Fills the defaults of the family's fields; checks nothing but what a default
// follows from.
absl::Status SetLlamaDefaults(ModelSpec& model);

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_ARCHITECTURES_LLAMA_FAMILY_H_
