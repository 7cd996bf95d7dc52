// What the figures are drawn from: plain data, no harness type.
//
// draw_figures() turns one FigureSet into pictures. Every figure NAME leaves NAME.gp (runs under
// plain gnuplot from its own directory), NAME.dat (its data), NAME.svg and NAME.png. The same
// FigureSet gives the same bytes. A figure whose data are missing is not drawn, and a note says so.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "adapters/result.h"

namespace assay::plots {

/// What is printed on every figure, so that a picture alone can be traced to its record.
struct Stamp {
  std::string experiment;
  std::string workload;
  std::string status;  ///< "registered" or "exploratory"
  std::string date;    ///< of the record, as 2026-01-31
  std::string hash;    ///< SHA-256 of the record; its first 12 digits are shown
  std::size_t n = 0;   ///< processes a row
  double confidence = 0.95;
  bool mixed_durability = false;
};

/// Latency against quantile, of one operation class.
struct Percentiles {
  struct Point {
    double quantile = 0.0;  ///< 0 to below 1
    double latency_ns = 0.0;
  };
  std::string operation;
  std::vector<Point> points;
};

/// One second (or whatever the slot is) of all trials of an arm.
struct Slot {
  double t_s = 0.0;
  double rate_low = 0.0, rate_median = 0.0, rate_high = 0.0;  ///< quartiles over trials, 1/s
  std::optional<double> p99_low_ns, p99_median_ns, p99_high_ns;
};

struct Arm {
  std::string name;
  std::string store;
  std::string version;
  std::string durability;  ///< with its proof: "power (declared)"
  bool reference = false;
  std::optional<double> centre, low, high;  ///< mean and interval of the metric
  std::vector<double> values;               ///< one a trial process
  std::optional<double> bytes_per_entry, write_amplification, barriers_per_operation,
      cpu_ns_per_operation;
  std::vector<Percentiles> latencies;
  std::vector<Slot> series;
};

struct FigureSet {
  Stamp stamp;
  std::string metric;     ///< "throughput"
  std::string unit;       ///< "operations/s", "ns", ...
  std::vector<Arm> arms;  ///< top row first, references last
  std::string no_curves;  ///< why an arm lacks latencies and series, where the caller knows
};

struct Drawing {
  std::string name;   ///< "throughput"
  std::string title;  ///< for people
};

struct Drawn {
  std::vector<Drawing> figures;
  std::vector<std::string> notes;  ///< what was left out, and why
};

/// Draws everything that the data allow into `directory`, which exists. Errors: environment when
/// gnuplot is missing, a file cannot be written, or gnuplot draws none of the figures. A figure
/// that it refuses is left out, with a note in its own words; once it took longer than `limit` for
/// one, the others are not tried.
[[nodiscard]] Result<Drawn> draw_figures(const FigureSet& set, const std::string& directory,
                                         std::chrono::seconds limit = std::chrono::seconds(60));

}  // namespace assay::plots
