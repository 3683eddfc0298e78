// CHECK(condition) << "more": our own mistakes, on in every build. A failed
// check prints file, line, condition and message to stderr and aborts; there is
// no recovery from a bug. What the world or the user did wrong is a Status
// instead.
//
//   CHECK(rank < ranks) << "rank " << rank << " of " << ranks;
//   CHECK_EQ(bytes % kAlignment, 0);
//   CHECK_OK(queue.Close());
#ifndef TROUPE_PROTO_BASE_CHECK_H_
#define TROUPE_PROTO_BASE_CHECK_H_

#include <sstream>
#include <string>

namespace troupe::internal {

// Collects the message; its destructor prints and aborts.
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, std::string what);
  [[noreturn]] ~CheckFailure();
  std::ostream& stream() { return stream_; }

 private:
  std::ostringstream stream_;
};

// Turns the stream expression into void, so that CHECK is one expression.
struct Voidify {
  void operator&(std::ostream&) const {}
};

template <typename A, typename B>
std::string Operands(const char* text, const A& a, const B& b) {
  std::ostringstream out;
  out << text << " (" << a << " vs. " << b << ")";
  return out.str();
}

}  // namespace troupe::internal

#define CHECK(condition)                                                     \
  __builtin_expect(static_cast<bool>(condition), true)                       \
      ? (void)0                                                              \
      : ::troupe::internal::Voidify() &                                      \
            ::troupe::internal::CheckFailure(__FILE__, __LINE__, #condition) \
                .stream()

#define TROUPE_CHECK_OP_(a, op, b)                                         \
  __builtin_expect(static_cast<bool>((a)op(b)), true)                      \
      ? (void)0                                                            \
      : ::troupe::internal::Voidify() &                                    \
            ::troupe::internal::CheckFailure(                              \
                __FILE__, __LINE__,                                        \
                ::troupe::internal::Operands(#a " " #op " " #b, (a), (b))) \
                .stream()

#define CHECK_EQ(a, b) TROUPE_CHECK_OP_(a, ==, b)
#define CHECK_NE(a, b) TROUPE_CHECK_OP_(a, !=, b)
#define CHECK_LT(a, b) TROUPE_CHECK_OP_(a, <, b)
#define CHECK_LE(a, b) TROUPE_CHECK_OP_(a, <=, b)
#define CHECK_GT(a, b) TROUPE_CHECK_OP_(a, >, b)
#define CHECK_GE(a, b) TROUPE_CHECK_OP_(a, >=, b)

// Of an absl::Status, which is not included: kernels of GPUs have CHECK, too,
// and nvcc reads each header three times.
#define CHECK_OK(expression)                                             \
  do {                                                                   \
    const auto troupe_check_status_ = (expression);                      \
    CHECK(troupe_check_status_.ok()) << troupe_check_status_.ToString(); \
  } while (false)

#endif  // TROUPE_PROTO_BASE_CHECK_H_
