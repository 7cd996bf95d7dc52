#include "harness/serve/connection.h"

#include <sys/socket.h>

#include <chrono>
#include <cstring>
#include <utility>

namespace assay {

using served::Answer;
using served::Op;
using served::Request;

/// Sends the entries of a scan in frames, each but the last when the client asks for more.
class Connection::ScanRelay final : public ScanSink {
 public:
  explicit ScanRelay(served::Channel& channel) : channel_(channel) {}
  bool entry(std::string_view key, std::string_view value) override {
    constexpr std::size_t kLengths = 8;
    const std::size_t size = key.size() + value.size() + kLengths;
    if (!payload_.empty() && payload_.size() + size > served::kScanFrameBytes && !flush()) {
      return false;
    }
    served::append_entry(key, value, payload_);
    return true;
  }
  [[nodiscard]] const std::string& left() const { return payload_; }
  [[nodiscard]] const Status& broken() const { return broken_; }

 private:
  /// False: the client wants no more, or is gone.
  bool flush() {
    std::string frame;
    broken_ = served::encode_answer(Answer::entries, payload_, frame);
    payload_.clear();
    if (broken_) broken_ = channel_.send(frame);
    if (!broken_) return false;
    std::string_view body;
    const Result<bool> got = channel_.receive(body);
    if (!got || !*got) {
      broken_ = got ? fail(ErrorKind::child, "the client left during a scan")
                    : Status(std::unexpected(got.error()));
      return false;
    }
    const Result<Request> request = served::decode_request(body);
    if (request && request->op == Op::more) return true;
    if (!request) {
      broken_ = std::unexpected(request.error());
    } else if (request->op != Op::stop) {
      broken_ = fail(Error(ErrorKind::bad_input, "another request during a scan")
                         .hint("answer its entries with more or stop"));
    }
    return false;
  }

  served::Channel& channel_;
  std::string payload_;
  Status broken_;
};

Connection::Connection(int socket, Served& served, const Everyone& everyone)
    : channel_(socket), served_(served), everyone_(everyone) {}

void Connection::end_input() {
  ::shutdown(channel_.socket(), SHUT_RD);
}

void Connection::end_output() {
  ::shutdown(channel_.socket(), SHUT_RDWR);
}

bool Connection::refuse(const Error& error) {
  answer_.clear();
  served::encode_error(error, answer_);
  return channel_.send(answer_).has_value();
}

Status Connection::handle_store(Op op) {
  const std::scoped_lock hold(served_.lock);
  if (op == Op::sync) return served_.store.sync();
  if (op == Op::checkpoint) return served_.store.checkpoint();
  if (op == Op::settle) return served_.store.settle();
  Settings pairs;
  if (op == Op::counters) {
    for (const auto& [name, value] : served_.store.counters()) {
      std::string text(sizeof(value), '\0');
      std::memcpy(text.data(), &value, sizeof(value));
      pairs.emplace(name, std::move(text));
    }
  } else {
    Result<Settings> settings = served_.store.effective_settings();
    if (!settings) return std::unexpected(settings.error());
    pairs = std::move(*settings);
  }
  return served::encode_answer(Answer::done, served::encode_pairs(pairs), answer_);
}

Connection::Handled Connection::handle_scan(const ScanRange& range) {
  // The range stands in the channel's buffer, which is used again for `more`.
  const std::string first(range.first);
  const std::string last(range.last);
  ScanRange own = range;
  own.first = first;
  own.last = last;
  ScanRelay relay(channel_);
  const Result<std::uint64_t> visited = session_->scan(own, relay);
  if (!relay.broken()) return {relay.broken(), false};
  if (!visited) return {std::unexpected(visited.error())};
  return {served::encode_answer(Answer::done, relay.left(), answer_)};
}

Connection::Handled Connection::handle_in_session(const Request& request) {
  if (const Status made = make_session(); !made) return {made};
  switch (request.op) {
    case Op::get: {
      std::string_view value;
      const Result<bool> found = session_->get(request.key, value);
      if (!found) return {std::unexpected(found.error())};
      return {served::encode_answer(*found ? Answer::done : Answer::absent,
                                    *found ? value : std::string_view(), answer_)};
    }
    case Op::put:
      return {session_->put(request.key, request.value)};
    case Op::erase:
      return {session_->erase(request.key)};
    case Op::batch:
      return {session_->apply(request.mutations)};
    case Op::rollback:
      return {session_->rollback(request.mutations)};
    case Op::scan:
      return handle_scan(request.range);
    default:
      return {};
  }
}

Connection::Handled Connection::handle(const Request& request) {
  switch (request.op) {
    case Op::more:
    case Op::stop:
      return {fail(ErrorKind::bad_input, "no scan is under way"), false};
    case Op::stats:
      return {served::encode_answer(Answer::done, everyone_.telemetry_text(), answer_)};
    case Op::shutdown:
      served_.shut_down.store(true);
      return {};
    case Op::sync:
    case Op::checkpoint:
    case Op::settle:
    case Op::counters:
    case Op::settings:
      return {handle_store(request.op)};
    default:
      return handle_in_session(request);
  }
}

Status Connection::make_session() {
  if (session_ != nullptr) return {};
  const std::scoped_lock hold(served_.lock);
  Result<std::unique_ptr<Session>> made = served_.store.session();
  if (!made) return std::unexpected(made.error());
  session_ = std::move(*made);
  return {};
}

bool Connection::greet() {
  std::string greeting;
  const Status encoded =
      served::encode_answer(Answer::done, served::encode_u64(served::kProtocolVersion), greeting);
  return encoded && channel_.send(greeting);
}

void Connection::serve() {
  for (bool go_on = greet(); go_on;) {
    std::string_view body;
    const Result<bool> got = channel_.receive(body);
    if (got && !*got) break;
    const Result<Request> request =
        got ? served::decode_request(body) : Result<Request>(std::unexpected(got.error()));
    if (!request) {
      (void)refuse(request.error());
      break;
    }
    const auto begin = std::chrono::steady_clock::now();
    answer_.clear();
    const Op op = request->op;
    const Handled handled = handle(*request);
    const auto took = std::chrono::steady_clock::now() - begin;
    telemetry_.record(op,
                      static_cast<std::uint64_t>(
                          std::chrono::duration_cast<std::chrono::nanoseconds>(took).count()),
                      !handled.outcome.has_value());
    if (!handled.outcome) {
      go_on = refuse(handled.outcome.error()) && handled.go_on;
      continue;
    }
    if (answer_.empty()) {
      const Status encoded = served::encode_answer(Answer::done, {}, answer_);
      ASSAY_CHECK(encoded.has_value(), "an empty answer fits a frame");
    }
    go_on = channel_.send(answer_).has_value();
  }
  const std::scoped_lock hold(served_.lock);
  session_.reset();
}

}  // namespace assay
