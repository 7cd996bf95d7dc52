# throughput: run `gnuplot throughput.gp` in this directory; the data are in throughput.dat.
reset session
set encoding utf8
unset title
set terminal svg size 900,540 font 'sans-serif,14' background '#ffffff' noenhanced
set output 'throughput.svg'
set label 101 'r4-life-cycle: throughput' at screen 0.02, screen 0.955 font ',19' noenhanced textcolor rgb '#222222'
set label 102 'Bar: geometric mean. Whisker: 95 % interval. Each dot is one trial process.' at screen 0.02, screen 0.905 font ',13' noenhanced textcolor rgb '#5f6368'
set label 103 'r4-chunk-1 · registered · n = 2 processes a row · 2026-12-07 · record c0eb053326e2' at screen 0.98, screen 0.025 right font ',11' noenhanced textcolor rgb '#5f6368'
set border 0
set grid linetype 1 dashtype 1 linewidth 1 linecolor rgb '#e4e6e9'
set tics scale 0
set lmargin at screen 0.10
set rmargin at screen 0.97
set tmargin at screen 0.86
set bmargin at screen 0.175
set key noenhanced textcolor rgb '#222222'
set yrange [6.6:-0.6] noextend
unset ytics
set grid noytics
set lmargin at screen 0.275
set label 201 'lode' at screen 0.262, first -0.182 right font ',14' noenhanced textcolor rgb '#222222'
set label 202 '0.3.0 (format 3) · power (declared)' at screen 0.262, first 0.182 right font ',11' noenhanced textcolor rgb '#5f6368'
set label 203 'lode-again' at screen 0.262, first 0.818 right font ',14' noenhanced textcolor rgb '#222222'
set label 204 'lode 0.3.0 (format 3) · power' at screen 0.262, first 1.182 right font ',11' noenhanced textcolor rgb '#5f6368'
set label 402 '(declared)' at screen 0.262, first 1.419 right font ',9' noenhanced textcolor rgb '#5f6368'
set label 205 'rocksdb' at screen 0.262, first 1.818 right font ',14' noenhanced textcolor rgb '#222222'
set label 206 '7.8.3 · power (declared)' at screen 0.262, first 2.182 right font ',11' noenhanced textcolor rgb '#5f6368'
set label 207 'lmdb' at screen 0.262, first 2.818 right font ',14' noenhanced textcolor rgb '#222222'
set label 208 '0.9.24 · power (declared)' at screen 0.262, first 3.182 right font ',11' noenhanced textcolor rgb '#5f6368'
set label 209 'sqlite' at screen 0.262, first 3.818 right font ',14' noenhanced textcolor rgb '#222222'
set label 210 '3.40.1 · power (declared)' at screen 0.262, first 4.182 right font ',11' noenhanced textcolor rgb '#5f6368'
set label 211 'null' at screen 0.262, first 4.818 right font ',14' noenhanced textcolor rgb '#222222'
set label 212 '1 · power (declared)' at screen 0.262, first 5.182 right font ',11' noenhanced textcolor rgb '#5f6368'
set label 213 'raw-file' at screen 0.262, first 5.818 right font ',14' noenhanced textcolor rgb '#222222'
set label 214 '1 · power (declared)' at screen 0.262, first 6.182 right font ',11' noenhanced textcolor rgb '#5f6368'
set arrow 301 from screen 0.02, first 4.50 to screen 0.97, first 4.50 nohead linewidth 1 dashtype 2 linecolor rgb '#9aa0a6'
set label 302 'references' at screen 0.02, first 4.72 left font ',11' textcolor rgb '#5f6368'
set xrange [0:7719.62007] noextend
set xtics ('0' 0, '2 k' 2000, '4 k' 4000, '6 k' 6000) scale 0 textcolor rgb '#222222'
set xlabel 'operations/s' noenhanced textcolor rgb '#222222'
unset key
set style fill solid 0.85 noborder
set label 406 '2.02 M →' at screen 0.96, first 5 right font ',13' noenhanced textcolor rgb '#5f6368'
plot 'throughput.dat' index 0 using ($1/2+0/2):($4-0.12):(0):1:($4-0.30):($4+0.06) with boxxyerror linecolor rgb '#d55e00', \
     'throughput.dat' index 0 using 1:($4-0.12):2:3 with xerrorbars pointtype 0 linewidth 2 linecolor rgb '#222222', \
     'throughput.dat' index 1 using 1:2 with points pointtype 7 pointsize 0.55 linecolor rgb '#d55e00', \
     'throughput.dat' index 2 using ($1/2+0/2):($4-0.12):(0):1:($4-0.30):($4+0.06) with boxxyerror linecolor rgb '#d55e00', \
     'throughput.dat' index 2 using 1:($4-0.12):2:3 with xerrorbars pointtype 0 linewidth 2 linecolor rgb '#222222', \
     'throughput.dat' index 3 using 1:2 with points pointtype 5 pointsize 0.55 linecolor rgb '#d55e00', \
     'throughput.dat' index 4 using ($1/2+0/2):($4-0.12):(0):1:($4-0.30):($4+0.06) with boxxyerror linecolor rgb '#e69f00', \
     'throughput.dat' index 4 using 1:($4-0.12):2:3 with xerrorbars pointtype 0 linewidth 2 linecolor rgb '#222222', \
     'throughput.dat' index 5 using 1:2 with points pointtype 7 pointsize 0.55 linecolor rgb '#e69f00', \
     'throughput.dat' index 6 using ($1/2+0/2):($4-0.12):(0):1:($4-0.30):($4+0.06) with boxxyerror linecolor rgb '#009e73', \
     'throughput.dat' index 6 using 1:($4-0.12):2:3 with xerrorbars pointtype 0 linewidth 2 linecolor rgb '#222222', \
     'throughput.dat' index 7 using 1:2 with points pointtype 7 pointsize 0.55 linecolor rgb '#009e73', \
     'throughput.dat' index 8 using ($1/2+0/2):($4-0.12):(0):1:($4-0.30):($4+0.06) with boxxyerror linecolor rgb '#0072b2', \
     'throughput.dat' index 8 using 1:($4-0.12):2:3 with xerrorbars pointtype 0 linewidth 2 linecolor rgb '#222222', \
     'throughput.dat' index 9 using 1:2 with points pointtype 7 pointsize 0.55 linecolor rgb '#0072b2', \
     'throughput.dat' index 12 using ($1/2+0/2):($4-0.12):(0):1:($4-0.30):($4+0.06) with boxxyerror linecolor rgb '#595959', \
     'throughput.dat' index 12 using 1:($4-0.12):2:3 with xerrorbars pointtype 0 linewidth 2 linecolor rgb '#222222', \
     'throughput.dat' index 13 using 1:2 with points pointtype 7 pointsize 0.55 linecolor rgb '#595959'
unset output
reset session
set encoding utf8
unset title
set terminal pngcairo size 900,540 font 'sans,14' fontscale 0.75 background '#ffffff' noenhanced
set output 'throughput.png'
set label 101 'r4-life-cycle: throughput' at screen 0.02, screen 0.955 font ',19' noenhanced textcolor rgb '#222222'
set label 102 'Bar: geometric mean. Whisker: 95 % interval. Each dot is one trial process.' at screen 0.02, screen 0.905 font ',13' noenhanced textcolor rgb '#5f6368'
set label 103 'r4-chunk-1 · registered · n = 2 processes a row · 2026-12-07 · record c0eb053326e2' at screen 0.98, screen 0.025 right font ',11' noenhanced textcolor rgb '#5f6368'
set border 0
set grid linetype 1 dashtype 1 linewidth 1 linecolor rgb '#e4e6e9'
set tics scale 0
set lmargin at screen 0.10
set rmargin at screen 0.97
set tmargin at screen 0.86
set bmargin at screen 0.175
set key noenhanced textcolor rgb '#222222'
set yrange [6.6:-0.6] noextend
unset ytics
set grid noytics
set lmargin at screen 0.275
set label 201 'lode' at screen 0.262, first -0.182 right font ',14' noenhanced textcolor rgb '#222222'
set label 202 '0.3.0 (format 3) · power (declared)' at screen 0.262, first 0.182 right font ',11' noenhanced textcolor rgb '#5f6368'
set label 203 'lode-again' at screen 0.262, first 0.818 right font ',14' noenhanced textcolor rgb '#222222'
set label 204 'lode 0.3.0 (format 3) · power' at screen 0.262, first 1.182 right font ',11' noenhanced textcolor rgb '#5f6368'
set label 402 '(declared)' at screen 0.262, first 1.419 right font ',9' noenhanced textcolor rgb '#5f6368'
set label 205 'rocksdb' at screen 0.262, first 1.818 right font ',14' noenhanced textcolor rgb '#222222'
set label 206 '7.8.3 · power (declared)' at screen 0.262, first 2.182 right font ',11' noenhanced textcolor rgb '#5f6368'
set label 207 'lmdb' at screen 0.262, first 2.818 right font ',14' noenhanced textcolor rgb '#222222'
set label 208 '0.9.24 · power (declared)' at screen 0.262, first 3.182 right font ',11' noenhanced textcolor rgb '#5f6368'
set label 209 'sqlite' at screen 0.262, first 3.818 right font ',14' noenhanced textcolor rgb '#222222'
set label 210 '3.40.1 · power (declared)' at screen 0.262, first 4.182 right font ',11' noenhanced textcolor rgb '#5f6368'
set label 211 'null' at screen 0.262, first 4.818 right font ',14' noenhanced textcolor rgb '#222222'
set label 212 '1 · power (declared)' at screen 0.262, first 5.182 right font ',11' noenhanced textcolor rgb '#5f6368'
set label 213 'raw-file' at screen 0.262, first 5.818 right font ',14' noenhanced textcolor rgb '#222222'
set label 214 '1 · power (declared)' at screen 0.262, first 6.182 right font ',11' noenhanced textcolor rgb '#5f6368'
set arrow 301 from screen 0.02, first 4.50 to screen 0.97, first 4.50 nohead linewidth 1 dashtype 2 linecolor rgb '#9aa0a6'
set label 302 'references' at screen 0.02, first 4.72 left font ',11' textcolor rgb '#5f6368'
set xrange [0:7719.62007] noextend
set xtics ('0' 0, '2 k' 2000, '4 k' 4000, '6 k' 6000) scale 0 textcolor rgb '#222222'
set xlabel 'operations/s' noenhanced textcolor rgb '#222222'
unset key
set style fill solid 0.85 noborder
set label 406 '2.02 M →' at screen 0.96, first 5 right font ',13' noenhanced textcolor rgb '#5f6368'
plot 'throughput.dat' index 0 using ($1/2+0/2):($4-0.12):(0):1:($4-0.30):($4+0.06) with boxxyerror linecolor rgb '#d55e00', \
     'throughput.dat' index 0 using 1:($4-0.12):2:3 with xerrorbars pointtype 0 linewidth 2 linecolor rgb '#222222', \
     'throughput.dat' index 1 using 1:2 with points pointtype 7 pointsize 0.55 linecolor rgb '#d55e00', \
     'throughput.dat' index 2 using ($1/2+0/2):($4-0.12):(0):1:($4-0.30):($4+0.06) with boxxyerror linecolor rgb '#d55e00', \
     'throughput.dat' index 2 using 1:($4-0.12):2:3 with xerrorbars pointtype 0 linewidth 2 linecolor rgb '#222222', \
     'throughput.dat' index 3 using 1:2 with points pointtype 5 pointsize 0.55 linecolor rgb '#d55e00', \
     'throughput.dat' index 4 using ($1/2+0/2):($4-0.12):(0):1:($4-0.30):($4+0.06) with boxxyerror linecolor rgb '#e69f00', \
     'throughput.dat' index 4 using 1:($4-0.12):2:3 with xerrorbars pointtype 0 linewidth 2 linecolor rgb '#222222', \
     'throughput.dat' index 5 using 1:2 with points pointtype 7 pointsize 0.55 linecolor rgb '#e69f00', \
     'throughput.dat' index 6 using ($1/2+0/2):($4-0.12):(0):1:($4-0.30):($4+0.06) with boxxyerror linecolor rgb '#009e73', \
     'throughput.dat' index 6 using 1:($4-0.12):2:3 with xerrorbars pointtype 0 linewidth 2 linecolor rgb '#222222', \
     'throughput.dat' index 7 using 1:2 with points pointtype 7 pointsize 0.55 linecolor rgb '#009e73', \
     'throughput.dat' index 8 using ($1/2+0/2):($4-0.12):(0):1:($4-0.30):($4+0.06) with boxxyerror linecolor rgb '#0072b2', \
     'throughput.dat' index 8 using 1:($4-0.12):2:3 with xerrorbars pointtype 0 linewidth 2 linecolor rgb '#222222', \
     'throughput.dat' index 9 using 1:2 with points pointtype 7 pointsize 0.55 linecolor rgb '#0072b2', \
     'throughput.dat' index 12 using ($1/2+0/2):($4-0.12):(0):1:($4-0.30):($4+0.06) with boxxyerror linecolor rgb '#595959', \
     'throughput.dat' index 12 using 1:($4-0.12):2:3 with xerrorbars pointtype 0 linewidth 2 linecolor rgb '#222222', \
     'throughput.dat' index 13 using 1:2 with points pointtype 7 pointsize 0.55 linecolor rgb '#595959'
unset output
