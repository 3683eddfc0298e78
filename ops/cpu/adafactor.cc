#include "ops/adafactor.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "ops/activation_type.h"
#include "ops/cpu/cpu_device.h"
#include "ops/cpu/kernels.h"

namespace troupe::cpu {
namespace {

double Square(double x) { return x * x; }

// One update; T is the type of the copy of the weights, G of the gradients.
template <typename T, typename G>
class AdafactorUpdate {
 public:
  AdafactorUpdate(const CpuDevice& cpu, const AdafactorArgs& args)
      : cpu_(cpu),
        args_(args),
        rows_(args.weights.dim(0)),
        columns_(args.weights.dim(1)),
        gradients_(args.gradients.data<G>()),
        second_moment_(DataFrom<float>(args.second_moment, 0)),
        scratch_(AdafactorScratchIn(args)) {}

  void Run() const {
    if (second_moment_ != nullptr) {
      UpdateSecondMoment();
    } else {
      UpdateRowMoment();
      UpdateColumnMoment();
    }
    SumSquares();
    UpdateWeights();
  }

 private:
  double GradientAt(int64_t element) const {
    return double{args_.gradient_scale} * FromElement(gradients_[element]);
  }

  // Of what is kept of second moments, with the mean of some squares.
  float Kept(float moment, double mean_square) const {
    return static_cast<float>(args_.beta2 * moment +
                              (1 - args_.beta2) *
                                  (mean_square + args_.epsilon1));
  }

  void UpdateSecondMoment() const {
    cpu_.ForElements(columns_, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        second_moment_[i] = Kept(second_moment_[i], Square(GradientAt(i)));
        scratch_.column_factors[i] =
            static_cast<float>(1 / std::sqrt(double{second_moment_[i]}));
      }
    });
    scratch_.row_factors[0] = 1;
  }

  void UpdateRowMoment() const {
    float* const moment = args_.row_moment.data<float>();
    cpu_.ForRows(rows_, columns_, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        double sum = 0;
        for (int64_t i = row * columns_; i < (row + 1) * columns_; ++i) {
          sum += Square(GradientAt(i));
        }
        moment[row] = Kept(moment[row], sum / static_cast<double>(columns_));
      }
    });
    double sum = 0;
    for (int64_t row = 0; row < rows_; ++row) sum += moment[row];
    const double mean = sum / static_cast<double>(rows_);
    for (int64_t row = 0; row < rows_; ++row) {
      scratch_.row_factors[row] =
          static_cast<float>(std::sqrt(mean / moment[row]));
    }
  }

  void UpdateColumnMoment() const {
    float* const moment = args_.column_moment.data<float>();
    cpu_.ForColumns(rows_, columns_, [&](int64_t begin, int64_t end) {
      std::vector<double> sums(end - begin);
      for (int64_t row = 0; row < rows_; ++row) {
        for (int64_t c = begin; c < end; ++c) {
          sums[c - begin] += Square(GradientAt(row * columns_ + c));
        }
      }
      for (int64_t c = begin; c < end; ++c) {
        moment[c] =
            Kept(moment[c], sums[c - begin] / static_cast<double>(rows_));
        scratch_.column_factors[c] =
            static_cast<float>(1 / std::sqrt(double{moment[c]}));
      }
    });
  }

  double DirectionAt(int64_t row, int64_t column) const {
    return GradientAt(row * columns_ + column) * scratch_.row_factors[row] *
           scratch_.column_factors[column];
  }

  void SumSquares() const {
    const float* const weights = args_.weights.data<float>();
    cpu_.ForRows(rows_, columns_, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        double of_update = 0;
        double of_weights = 0;
        for (int64_t c = 0; c < columns_; ++c) {
          of_update += Square(DirectionAt(row, c));
          of_weights += Square(weights[row * columns_ + c]);
        }
        scratch_.row_squares[2 * row] = of_update;
        scratch_.row_squares[2 * row + 1] = of_weights;
      }
    });
    for (int which = 0; which < 2; ++which) {
      double& sum = scratch_.squares[which] = 0;
      for (int64_t row = 0; row < rows_; ++row) {
        sum += scratch_.row_squares[2 * row + which];
      }
    }
  }

  void UpdateWeights() const {
    const double elements = static_cast<double>(rows_ * columns_);
    double step = args_.learning_rate;
    if (args_.scale_parameter) {
      step *=
          std::max(args_.epsilon2, std::sqrt(scratch_.squares[1] / elements));
    }
    const double kept = 1 - step * args_.weight_decay;
    // NaN stays NaN, which std::max would drop.
    const double rms = std::sqrt(scratch_.squares[0] / elements);
    if (!(rms <= 1)) step /= rms;
    float* const weights = args_.weights.data<float>();
    T* const parameters = DataFrom<T>(args_.parameters, 0);
    cpu_.ForRows(rows_, columns_, [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        for (int64_t c = 0; c < columns_; ++c) {
          const int64_t i = row * columns_ + c;
          weights[i] = static_cast<float>(kept * weights[i] -
                                          step * DirectionAt(row, c));
          if (parameters != nullptr) parameters[i] = ToElement<T>(weights[i]);
          if (args_.zero_gradients) gradients_[i] = ToElement<G>(0);
        }
      }
    });
  }

  const CpuDevice& cpu_;
  const AdafactorArgs& args_;
  const int64_t rows_, columns_;
  G* const gradients_;
  float* const second_moment_;  // or null
  const AdafactorScratch scratch_;
};

}  // namespace

void Adafactor(Device& device, const AdafactorArgs& args) {
  const CpuDevice& cpu = CpuDevice::From(device);
  WithTypes(args.parameters, args.gradients, [&]<typename T, typename G>() {
    AdafactorUpdate<T, G>(cpu, args).Run();
  });
}

}  // namespace troupe::cpu
