#include "ops/route.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/cpu/cpu_device.h"
#include "ops/cpu/floats_of.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

// NaN is larger than any number.
bool Larger(float a, float b) {
  return a > b || (std::isnan(a) && !std::isnan(b));
}

// The k largest of some keys, largest first, of equal ones the lower index.
class Largest {
 public:
  Largest(const float* keys, int64_t k, int32_t* chosen)
      : keys_(keys), k_(k), chosen_(chosen) {}

  // In rising order of indices.
  void Offer(int32_t index) {
    if (count_ == k_ && !Larger(keys_[index], keys_[chosen_[k_ - 1]])) return;
    if (count_ < k_) ++count_;
    int64_t at = count_ - 1;
    for (; at > 0 && Larger(keys_[index], keys_[chosen_[at - 1]]); --at) {
      chosen_[at] = chosen_[at - 1];
    }
    chosen_[at] = index;
  }

 private:
  const float* const keys_;
  const int64_t k_;
  int32_t* const chosen_;
  int64_t count_ = 0;
};

// The sum of the two largest, or the one there is.
float GroupScore(const float* keys, int64_t count) {
  if (count == 1) return keys[0];
  int32_t best[2];
  Largest largest(keys, 2, best);
  for (int64_t i = 0; i < count; ++i) largest.Offer(static_cast<int32_t>(i));
  return keys[best[0]] + keys[best[1]];
}

// Chooses experts of one row after another; has room for their keys.
class Chooser {
 public:
  Chooser(const RouteRule& rule, int64_t experts)
      : rule_(rule),
        experts_(experts),
        keys_(experts),
        group_scores_(rule.groups),
        best_groups_(rule.groups_used),
        used_(rule.groups) {}

  void Choose(const float* scores, const float* bias, int64_t k,
              int32_t* choices) {
    for (int64_t i = 0; i < experts_; ++i) {
      keys_[i] = bias == nullptr ? scores[i] : scores[i] + bias[i];
    }
    const int64_t in_group = experts_ / rule_.groups;
    PickGroups(in_group);
    Largest largest(keys_.data(), k, choices);
    for (int group = 0; group < rule_.groups; ++group) {
      if (!used_[group]) continue;
      for (int64_t i = group * in_group; i < (group + 1) * in_group; ++i) {
        largest.Offer(static_cast<int32_t>(i));
      }
    }
  }

 private:
  void PickGroups(int64_t in_group) {
    const bool all = rule_.groups_used == rule_.groups;
    used_.assign(rule_.groups, all);
    if (all) return;
    for (int group = 0; group < rule_.groups; ++group) {
      group_scores_[group] =
          GroupScore(keys_.data() + group * in_group, in_group);
    }
    Largest largest(group_scores_.data(), rule_.groups_used,
                    best_groups_.data());
    for (int group = 0; group < rule_.groups; ++group) largest.Offer(group);
    for (const int32_t group : best_groups_) used_[group] = true;
  }

  const RouteRule& rule_;
  const int64_t experts_;
  std::vector<float> keys_, group_scores_;
  std::vector<int32_t> best_groups_;
  std::vector<bool> used_;
};

// The scores of a row of e logits, in their place or elsewhere, and its
// logsumexp where that is wanted.
void Score(const CpuDevice& cpu, RouteScores kind, const float* logits,
           int64_t e, float* scores, float* logsumexp) {
  const ActivationLoops<float>& loops = cpu.loops<float>();
  float largest = 0;
  double sum = 0;
  if (kind == RouteScores::kSoftmax || logsumexp != nullptr) {
    loops.softmax_sum(logits, e, &largest, &sum);
  }
  if (logsumexp != nullptr) {
    *logsumexp = static_cast<float>(largest + std::log(sum));
  }
  if (kind == RouteScores::kSoftmax) {
    if (scores != logits) std::copy_n(logits, e, scores);
    loops.exp_scaled(scores, e, largest, static_cast<float>(1 / sum));
    return;
  }
  for (int64_t i = 0; i < e; ++i) scores[i] = -logits[i];
  loops.exp_scaled(scores, e, 0.0f, 1.0f);
  for (int64_t i = 0; i < e; ++i) scores[i] = 1 / (1 + scores[i]);
}

void Gates(const RouteRule& rule, const float* scores, const int32_t* choices,
           int64_t k, float* gates) {
  double sum = 1;
  if (rule.renormalise) {
    sum = 0;
    for (int64_t j = 0; j < k; ++j) sum += scores[choices[j]];
  }
  for (int64_t j = 0; j < k; ++j) {
    gates[j] = static_cast<float>(rule.scale * (scores[choices[j]] / sum));
  }
}

void CheckChoices(const int32_t* choices, int64_t k, int64_t e, int64_t row) {
  for (int64_t j = 0; j < k; ++j) {
    CHECK(choices[j] >= 0 && choices[j] < e)
        << "choice " << choices[j] << " of row " << row << ", of " << e
        << " experts";
  }
}

// The row of d_logits of a row of scores; has room for the gradient of those.
class RowBackward {
 public:
  explicit RowBackward(const RouteBackwardArgs& args)
      : args_(args),
        e_(args.scores.columns()),
        k_(args.choices.columns()),
        d_scores_(e_) {}

  void Run(int64_t row) {
    const float* const s = args_.scores.data<float>() + row * e_;
    float* const dx = args_.d_logits.data<float>() + row * e_;
    const bool of_logsumexp = args_.d_logsumexp.defined();
    const double d_logsumexp =
        of_logsumexp ? args_.d_logsumexp.data<float>()[row] : 0.0;
    BeginWithScores(row);
    AddGateGradient(s, row);
    if (args_.rule.scores == RouteScores::kSoftmax) {
      double mean = -d_logsumexp;  // its slope is the softmax
      for (int64_t i = 0; i < e_; ++i) mean += s[i] * d_scores_[i];
      for (int64_t i = 0; i < e_; ++i) {
        dx[i] = static_cast<float>(s[i] * (d_scores_[i] - mean));
      }
      return;
    }
    for (int64_t i = 0; i < e_; ++i) {
      d_scores_[i] *= s[i] * (1.0 - s[i]);
      if (of_logsumexp) {
        const double logit = args_.logits.data<float>()[row * e_ + i];
        d_scores_[i] +=
            d_logsumexp * std::exp(logit - args_.logsumexp.data<float>()[row]);
      }
    }
    for (int64_t i = 0; i < e_; ++i) dx[i] = static_cast<float>(d_scores_[i]);
  }

 private:
  void BeginWithScores(int64_t row) {
    const float* const d_scores = DataFrom<float>(args_.d_scores, row * e_);
    for (int64_t i = 0; i < e_; ++i) {
      d_scores_[i] = d_scores == nullptr ? 0.0 : d_scores[i];
    }
  }

  void AddGateGradient(const float* s, int64_t row) {
    const int32_t* const choices = args_.choices.data<int32_t>() + row * k_;
    const float* const d_gates = args_.d_gates.data<float>() + row * k_;
    CheckChoices(choices, k_, e_, row);
    double sum = 1, mean = 0;
    if (args_.rule.renormalise) {
      sum = 0;
      for (int64_t j = 0; j < k_; ++j) {
        sum += s[choices[j]];
        mean += double{d_gates[j]} * s[choices[j]];
      }
      mean /= sum;
    }
    for (int64_t j = 0; j < k_; ++j) {
      d_scores_[choices[j]] += args_.rule.scale * (d_gates[j] - mean) / sum;
    }
  }

  const RouteBackwardArgs& args_;
  const int64_t e_, k_;
  std::vector<double> d_scores_;
};

}  // namespace

void Route(Device& device, const RouteArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  const int64_t e = args.logits.columns(), k = args.choices.columns();
  const std::vector<float> biases = FloatsOf(args.bias);
  const float* const bias = biases.empty() ? nullptr : biases.data();
  cpu.ForRows(args.logits.rows(), e, [&](int64_t begin, int64_t end) {
    Chooser chooser(args.rule, e);
    for (int64_t row = begin; row < end; ++row) {
      float* const scores = args.scores.data<float>() + row * e;
      int32_t* const choices = args.choices.data<int32_t>() + row * k;
      Score(cpu, args.rule.scores, args.logits.data<float>() + row * e, e,
            scores, DataFrom<float>(args.logsumexp, row));
      chooser.Choose(scores, bias, k, choices);
      Gates(args.rule, scores, choices, k, args.gates.data<float>() + row * k);
    }
  });
}

void RouteBackward(Device& device, const RouteBackwardArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  cpu.ForRows(args.scores.rows(), args.scores.columns(),
              [&](int64_t begin, int64_t end) {
                RowBackward backward(args);
                for (int64_t row = begin; row < end; ++row) backward.Run(row);
              });
}

void RouteLoad(Device& device, const RouteLoadArgs& args) {
  const int64_t e = args.load.columns(), k = args.choices.columns();
  float* const load = args.load.data<float>();
  if (!args.accumulate) std::fill_n(load, args.load.elements(), 0.0f);
  for (int64_t row = 0; row < args.choices.rows(); ++row) {
    const int32_t* const choices = args.choices.data<int32_t>() + row * k;
    CheckChoices(choices, k, e, row);
    float* const of_sequence =
        load + args.rows.Of(row) * e * (args.by_choice ? k : 1);
    const int64_t step = args.by_choice ? e : 0;
    for (int64_t j = 0; j < k; ++j) of_sequence[j * step + choices[j]] += 1;
  }
}

}  // namespace troupe::cpu
