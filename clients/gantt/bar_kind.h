// What a bar of a chart stands for: kinds of instructions that look alike.
#ifndef TROUPE_CLIENTS_GANTT_BAR_KIND_H_
#define TROUPE_CLIENTS_GANTT_BAR_KIND_H_

#include "proto/program.pb.h"

namespace troupe {

enum class BarKind {
  kForward,
  kRecompute,
  kBackwardInput,
  kBackwardWeight,
  kTransfer,  // SEND, RECV
  kExchange,
  kCollective,  // of gradients, parameters and scalars
  kMove,        // FETCH, EVICT
  kStep,        // GRAD_NORM, STEP
  kData,
  kOther,
};
inline constexpr BarKind kBarKinds[] = {
    BarKind::kForward,        BarKind::kRecompute, BarKind::kBackwardInput,
    BarKind::kBackwardWeight, BarKind::kTransfer,  BarKind::kExchange,
    BarKind::kCollective,     BarKind::kMove,      BarKind::kStep,
    BarKind::kData,           BarKind::kOther,
};

BarKind KindOf(Instruction::Kind kind);

struct BarName {
  const char* name;  // "backward, input", for legends
  char letter;       // in text charts
};
BarName NameOf(BarKind kind);

// Whether it is a piece of a pass over one stage and micro-batch.
bool IsPass(BarKind kind);

}  // namespace troupe

#endif  // TROUPE_CLIENTS_GANTT_BAR_KIND_H_
